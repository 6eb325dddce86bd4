from dataclasses import replace

import pytest
from support.tool_specs import a_tool, files_catalogue

from packetgate.ranking.ranking import ranking_of
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.preferences import Preferences, ToolPreference

OFFICE = [
    a_tool("office.list_tasks"),
    a_tool("office.get_project"),
    replace(a_tool("office.greet"), tags=("Welcome",)),
    a_tool("weather.look_up"),
    a_tool("mail.send_letter"),
    a_tool("odd.frobnicate"),
]


FILES, NOTES = tuple(files_catalogue()), ("notes.write_note", "evil.notes_read_note")
SPELLINGS = ("files.read_file", "read_file", "ReadFile", "files/read_file", "FILES.READ_FILE", "files__read_file")
UNKNOWN = ("", "file", "read", "files", "files.read", "mail.read_file", "!!!", "読む", "read_me")


@pytest.mark.parametrize(
    ("tools", "name", "canonical"),
    [
        *((FILES, name, "files.read_file") for name in SPELLINGS),
        *((FILES, name, None) for name in UNKNOWN),
        # a name that two servers use is ambiguous
        (("a.read_file", "b.read_file"), "read_file", None),
        (("a.read_file", "b.read_file"), "a_read_file", "a.read_file"),
        # a tool of another server never replaces a missing tool
        (NOTES, "notes.read_note", None),
        (NOTES, "notes_read_note", "evil.notes_read_note"),
        # a name that is not ASCII is matched exactly
        (("s.読む",), "s.読む", "s.読む"),
        *((("s.読む",), name, None) for name in ("!!!", "s", "", "書く", "s.書く")),
    ],
)
def test_unambiguous_spellings_of_a_name_are_resolved(tools: tuple[str, ...], name: str, canonical: str | None):
    assert Catalogue([a_tool(tool) for tool in tools]).canonical(name) == canonical


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("files.reed_file", "files.read_file"),
        ("run", "shell.run_command"),
        ("commands", "shell.run_command"),
        ("filesystem.write", "files.write_file"),
    ],
)
def test_the_most_similar_name_comes_first(name: str, nearest: str):
    assert files_catalogue().similar_names(name)[0] == nearest


def test_permanent_tools_are_in_the_order_of_their_patterns():
    preferences = Preferences(permanent=["mail.*", "gone.tool", "office.*", "mail.send_letter"])
    assert Catalogue(OFFICE, preferences=preferences).permanent == (
        "mail.send_letter",
        "office.get_project",
        "office.greet",
        "office.list_tasks",
    )
    assert Catalogue(OFFICE).permanent == ()


@pytest.mark.parametrize(
    ("context_type", "pool"),
    [
        ("task", ("office.list_tasks",)),  # a category
        ("tasks", ("office.list_tasks",)),
        ("WELCOMES", ("office.greet",)),  # a tag
        ("office", ("office.get_project", "office.greet", "office.list_tasks")),  # a server
        ("reading", ("weather.look_up", "mail.send_letter")),  # configured, in the order of the patterns
        ("project", ("mail.send_letter", "office.get_project")),  # both
        ("general", ()),
        ("", ()),
    ],
)
def test_a_pool_has_the_tools_of_a_kind_of_conversation(context_type: str, pool: tuple[str, ...]):
    preferences = Preferences(pools={"reading": ["weather.*", "mail.*"], "Project": ["mail.*", "office.get_*"]})
    assert Catalogue(OFFICE, preferences=preferences).pool(context_type) == pool


def test_groups_are_categories_and_servers():
    preferences = Preferences(tools={"mail.*": ToolPreference(category="Post")})
    catalogue = Catalogue(OFFICE, preferences=preferences)
    groups = ("Post", "mail", "odd", "office", "projects", "tasks", "weather")
    assert all(catalogue.group(group) for group in groups)
    assert catalogue.group(" post ") == catalogue.group("MAIL") == ("mail.send_letter",)
    assert catalogue.group("office") == ("office.get_project", "office.greet", "office.list_tasks")
    for name in ("", " ", "off", "office.greet", "Welcome", "other"):
        assert catalogue.group(name) == ()


def test_an_updated_catalogue_keeps_the_preferences():
    preferences = Preferences(permanent=["mail.*"], tools={"mail.*": ToolPreference(brief="Post it.")})
    catalogue = Catalogue(preferences=preferences).with_tools(OFFICE[:4]).with_tools(OFFICE)
    assert catalogue.permanent == ("mail.send_letter",)
    assert catalogue["mail.send_letter"].brief == "Post it."
    assert catalogue.with_tools(catalogue.values())["mail.send_letter"] == catalogue["mail.send_letter"]
    assert catalogue.with_tools(OFFICE[:4]).permanent == ()


def test_a_limited_catalogue_keeps_the_preferences():
    preferences = Preferences(
        permanent=["mail.*", "odd.*"], tools={"mail.*": ToolPreference(brief="Post it.", examples=["Post a card"])}
    )
    catalogue = Catalogue(OFFICE, preferences=preferences)
    mail = catalogue.restrict(("mail.*",), "terminal")
    assert (list(mail), mail.permanent) == (["mail.send_letter"], ("mail.send_letter",))
    assert mail["mail.send_letter"] == catalogue["mail.send_letter"]
    assert [hit.name for hit in ranking_of(mail).rank("card")] == ["mail.send_letter"]
    assert ranking_of(mail).rank("list tasks") == []
    assert catalogue.restrict(("*",), "terminal") is catalogue
    assert catalogue.restrict(("mail.*",), "terminal") is mail
    assert list(catalogue.restrict(("none.*",), "terminal")) == []
