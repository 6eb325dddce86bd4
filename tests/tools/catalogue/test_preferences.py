"""`packetgate.toml`: what may stand in it, what may not, and that every word of it has its effect."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from support.tool_specs import a_tool, files_catalogue

from packetgate.state.errors import ConfigError
from packetgate.state.sections import Access
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.chains import Chain, Step
from packetgate.tools.catalogue.preferences import (
    ContextPreference,
    Preferences,
    Task,
    ToolPreference,
    UserPreference,
    load_preferences,
    matching,
)
from packetgate.tools.palette.candidates import PaletteRequest
from packetgate.tools.palette.choice import choose_palette
from packetgate.tools.palette.texts import describe

SPECS = [*files_catalogue().values(), a_tool("mail.send_letter", "Send a letter.")]


def preferring(**said: ToolPreference) -> Catalogue:
    """Return a catalogue under what is said of the tools of each server."""
    return Catalogue(SPECS, preferences=Preferences(tools={f"{server}.*": one for server, one in said.items()}))


LONG = " ".join("w" * 100)


@dataclass(frozen=True)
class Good:
    id: str
    text: str
    means: Preferences


@dataclass(frozen=True)
class Bad:
    id: str
    text: bytes
    says: tuple[str, ...]


CHAIN = b"[chains.a]\ndescription = 'a'\nsteps = [{tool = 'a.b'}, {tool = 'a.c', params = {x = ['%s']}}]"

GOOD = [
    Good("nothing", "", Preferences()),
    Good("permanent", "permanent = ['a.b', 'c.*']", Preferences(permanent=["a.b", "c.*"])),
    Good("pools", "[pools]\nx = ['a.b']\n'y z' = []", Preferences(pools={"x": ["a.b"], "y z": []})),
    Good(
        "white space", "permanent = [' a ']\n[pools]\n' x ' = ['a']", Preferences(permanent=["a"], pools={"x": ["a"]})
    ),
    Good(
        "a tool",
        '[tools."a.b"]\nbrief = """Do\n  it."""\ncategory = "c"\nexternal = false\nexamples = ["do it"]',
        Preferences(
            tools={
                "a.b": ToolPreference(
                    brief="Do it.",
                    category="c",
                    external=False,
                    examples=["do it"],
                )
            }
        ),
    ),
    Good(
        "by kind and by user",
        "recent_tools = 5\n[contexts.code]\npermanent = ['a.b']\nrecent_tools = 8\n[users.ann]\npermanent = ['c.d']",
        Preferences(
            recent_tools=5,
            contexts={"code": ContextPreference(permanent=["a.b"], recent_tools=8)},
            users={"ann": UserPreference(permanent=["c.d"])},
        ),
    ),
    Good(
        "categories and tasks",
        "[categories]\nbees = ['hive']\n[tasks.release]\npatterns = ['cut * release']\ntools = ['git.*']",
        Preferences(
            categories={"bees": ["hive"]}, tasks={"release": Task(patterns=["cut * release"], tools=["git.*"])}
        ),
    ),
    Good(
        "a chain",
        "[chains.copy]\ndescription = 'Copy.'\nparameters = {a = 'What.'}\n"
        "steps = [{tool = 'a.b', params = {x = '{a}'}},"
        " {tool = 'a.c', params = {y = ['{1} {1.z}', 7]}}]",
        Preferences(
            chains={
                "copy": Chain(
                    description="Copy.",
                    parameters={"a": "What."},
                    steps=[Step(tool="a.b", params={"x": "{a}"}), Step(tool="a.c", params={"y": ["{1} {1.z}", 7]})],
                )
            }
        ),
    ),
    Good("tables of others", "permanent = ['a']\n[discord]\nx = 1", Preferences(permanent=["a"])),
    Good("a byte order mark", "\ufeffpermanent = ['é.読む']", Preferences(permanent=["é.読む"])),
    Good("100 words", f"[tools.a]\nbrief = '{'w ' * 100}'", Preferences(tools={"a": ToolPreference(brief=LONG)})),
]

BAD = [
    Bad("no TOML", b"permanent = [", ("not TOML",)),
    Bad("a key twice", b"permanent = []\npermanent = []", ("not TOML",)),
    Bad("a number without end", b"permanent = " + b"9" * 5_000, ("not TOML", "5000 digits")),
    Bad("brackets without end", b"permanent = " + b"[" * 5_000, ("not TOML",)),
    Bad("not UTF-8", b"permanent = ['\xe9']", ("UTF-8", "byte 14")),
    Bad("unknown", b"colour = 1", ("colour: not known", "permanent", "[pools]")),
    Bad("unknown of a tool", b"[tools.'a.b']\nrisks = 'read'", ('tools."a.b".risks: not known', "brief, category")),
    Bad("a tool without quotes", b"[tools.a.b]\nbrief = 'x'", ("tools.a.b: not known", "quotes", '"server.tool"')),
    Bad("no list", b"permanent = 'a.b'", ("permanent:", "list")),
    Bad("no text", b"permanent = ['a', 1]", ("permanent.1:", "string")),
    Bad("empty pattern", b"permanent = ['a', ' ']", ("permanent.1:", "at least 1 character")),
    Bad("empty name of a pool", b"[pools]\n'' = ['a']", ("pools.", "at least 1 character")),
    Bad("empty name of a tool", b"[tools.'']\nbrief = 'a'", ("tools.", "at least 1 character")),
    Bad("empty brief", b"[tools.a]\nbrief = ''", ("tools.a.brief:", "at least 1 character")),
    Bad("empty example", b"[tools.a]\nexamples = ['']", ("tools.a.examples.0:", "at least 1 character")),
    Bad("long brief", b"[tools.a]\nbrief = '" + b"w " * 101 + b"'", ("tools.a.brief: 101 words", "100")),
    Bad("too few recent tools", b"recent_tools = 4", ("recent_tools:", "greater than or equal to 5")),
    Bad(
        "too many of a kind", b"[contexts.a]\nrecent_tools = 9", ("contexts.a.recent_tools:", "less than or equal to 8")
    ),
    Bad("unknown of a kind", b"[contexts.a]\npools = []", ("contexts.a.pools: not known", "[contexts.NAME]")),
    Bad("two words", b"[categories]\nbees = ['queen bee']", ("categories: of 'bees', 'queen bee' is not one word",)),
    Bad("a task without tools", b"[tasks.a]\npatterns = ['a']", ("tasks.a.tools:", "required")),
    Bad("a task without patterns", b"[tasks.a]\npatterns = []\ntools = ['a']", ("tasks.a.patterns:", "at least 1")),
    Bad("a chain without steps", b"[chains.a]\ndescription = 'a'\nsteps = []", ("chains.a.steps:", "at least 1")),
    Bad("an odd name of a chain", b"[chains.'a b']\ndescription = 'a'", ('chains."a b"', "pattern")),
    Bad("an unknown parameter of a chain", CHAIN % b"{b}", ("chains.a: step 2 has {b}, which is neither",)),
    Bad("a step that comes later", CHAIN % b"{2.x}", ("chains.a: step 2 has {2.x}, which is neither",)),
    Bad("a chain in a chain", CHAIN.replace(b"a.b", b"chain.a") % b"", ("chains.a: step 1 is a chain",)),
    Bad("no boolean", b"[tools.a]\nexternal = 'yes'", ("tools.a.external:", "boolean")),
]


@pytest.mark.parametrize("case", GOOD, ids=lambda case: case.id)
def test_what_is_understood(case: Good, tmp_path: Path):
    file = tmp_path / "packetgate.toml"
    file.write_text(case.text, encoding="utf-8")
    assert load_preferences(file) == case.means


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.id)
def test_what_is_refused_by_its_name(case: Bad, tmp_path: Path):
    file = tmp_path / "packetgate.toml"
    file.write_bytes(case.text)
    with pytest.raises(ConfigError) as caught:
        load_preferences(file)
    for word in (str(file), *case.says):
        assert word in str(caught.value)


def test_without_a_file_nothing_is_preferred(tmp_path: Path):
    assert load_preferences(None) == Preferences()
    for path in (tmp_path, tmp_path / "none.toml"):
        with pytest.raises(ConfigError, match="PACKETGATE_CONFIG"):
            load_preferences(path)


def test_patterns_fit_names_in_their_own_order_and_each_once():
    names = ["a.one", "a.two", "b.one", "A.one"]
    assert matching(["b.*", "a.two", "*.one"], names) == ("b.one", "a.two", "a.one", "A.one")
    assert matching(["a", "one", "c.*"], names) == matching([], names) == ()


def test_a_later_pattern_adds_to_an_earlier_and_has_the_last_word():
    said = Preferences(
        tools={
            "files.*": ToolPreference(category="papers", examples=["first"]),
            "*.read_file": ToolPreference(brief="Read it.", external=True, examples=["second"]),
            "files.read_*": ToolPreference(category="books"),
        }
    )
    catalogue = Catalogue(SPECS, preferences=said)
    read, write = catalogue["files.read_file"], catalogue["files.write_file"]
    assert (read.category, read.brief, read.is_external) == ("books", "Read it.", True)
    assert read.examples == ("first", "second")
    assert (write.category, write.brief, write.is_external) == ("papers", "Write text to a file.", False)
    assert catalogue["shell.run_command"] == files_catalogue()["shell.run_command"]


def test_patterns_that_fit_nothing_are_told_with_their_place():
    said = Preferences(
        permanent=["files.*", "file.*"], pools={"x": ["shell.run"], "y": ["*"]}, tools={"mail.send": ToolPreference()}
    )
    assert said.without_a_tool([spec.name for spec in SPECS]) == (
        ("permanent", "file.*"),
        ("pools.x", "shell.run"),
        ("tools", "mail.send"),
    )
    assert len(said.without_a_tool([])) == 5


def test_a_brief_is_what_prompts_show():
    catalogue = preferring(mail=ToolPreference(brief="Post it."))
    assert describe(catalogue["mail.send_letter"], "brief") == "- mail.send_letter: Post it."
    assert "Send a letter." in describe(catalogue["mail.send_letter"], "full")


def test_a_category_shows_in_the_ledger_and_names_a_group():
    assert "- mail (1 tool): post 1; send_letter" in preferring(mail=ToolPreference(category="post")).ledger
    assert preferring(mail=ToolPreference(category="post")).group("POST") == ("mail.send_letter",)
    assert Catalogue(SPECS).group("post") == ()


def test_what_is_called_external_comes_last_where_the_request_does_not_call_for_it():
    def offered(catalogue: Catalogue, words: str) -> list[str]:
        wanted = PaletteRequest(words=words, access=Access.READ, size=8, token_budget=2_000)
        return [entry.tool_name for entry in choose_palette(wanted, catalogue).entries]

    specs = [a_tool("notes.read_archive", "Read an old note."), a_tool("notes.read_note_today", "Read a note.")]
    outside = Preferences(tools={"*_archive": ToolPreference(external=True)})
    assert offered(Catalogue(specs), "xyzzy")[0] == "notes.read_archive"
    assert offered(Catalogue(specs, preferences=outside), "xyzzy")[0] == "notes.read_note_today"
    assert offered(Catalogue(specs, preferences=outside), "xyzzy on the web")[0] == "notes.read_archive"


def test_an_example_is_found_by():
    assert Catalogue(SPECS).ranking.rank("who owes me an answer") == []
    asked = preferring(mail=ToolPreference(examples=["Answer whom I owe one"]))
    assert [hit.name for hit in asked.ranking.rank("who owes me an answer")] == ["mail.send_letter"]


@pytest.mark.parametrize(
    ("request_", "fits"),
    [
        ("Write the release notes, please", True),
        ("RELEASE-NOTES for v2", True),
        ("Cut a new release", True),
        ("cut release", True),
        ("deploying it", True),
        ("shortcut the release", False),
        ("release the notes", False),
        ("redeploy it", False),
        ("", False),
    ],
)
def test_a_task_is_told_by_the_words_of_a_request(request_: str, fits: bool):
    assert Task(patterns=["release notes", "cut * release", "deploy*"], tools=["a"]).is_of(request_) is fits
