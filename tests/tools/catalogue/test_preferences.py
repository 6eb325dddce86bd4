"""`packetgate.toml`: valid and invalid settings, and their effects."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.tool_specs import a_tool, files_catalogue

from packetgate.state.errors import ConfigError
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.preferences import (
    Preferences,
    ToolPreference,
    load_preferences,
)

SPECS = [*files_catalogue().values(), a_tool("mail.send_letter", "Send a letter.")]


GOOD: list[tuple[str, str, Preferences]] = [
    ("nothing", "", Preferences()),
    ("white space", "permanent = [' a ']\n[pools]\n' x ' = ['a']", Preferences(permanent=["a"], pools={"x": ["a"]})),
    (
        "a tool",
        '[tools."a.b"]\nbrief = """Do\n  it."""\ncategory = "c"\nexternal = false\nexamples = ["do it"]',
        Preferences(tools={"a.b": ToolPreference(brief="Do it.", category="c", external=False, examples=["do it"])}),
    ),
    ("a byte order mark and a table of others", "\ufeffpermanent = ['é.読む']\n[discord]\nx = 1",
     Preferences(permanent=["é.読む"])),
]  # fmt: skip

BAD: list[tuple[str, bytes, tuple[str, ...]]] = [
    ("no TOML", b"permanent = [", ()),
    ("a number without end", b"permanent = " + b"9" * 5_000, ()),
    ("not UTF-8", b"permanent = ['\xe9']", ("byte 14",)),
    ("unknown", b"colour = 1", ("colour:", "permanent", "[pools]")),
    ("unknown of a tool", b"[tools.'a.b']\nrisks = 'read'", ('tools."a.b".risks:', "brief, category")),
    ("a tool without quotes", b"[tools.a.b]\nbrief = 'x'", ("tools.a.b:", "quotes", '"server.tool"')),
    ("no list", b"permanent = 'a.b'", ("permanent:",)),
    ("empty pattern", b"permanent = ['a', ' ']", ("permanent.1:",)),
    ("long brief", b"[tools.a]\nbrief = '" + b"w " * 101 + b"'", ("tools.a.brief:", "101")),
    ("too few recent tools", b"recent_tools = 4", ("recent_tools:",)),
    ("two words", b"[categories]\nbees = ['queen bee']", ("categories.bees.0:",)),
    ("a task without tools", b"[tasks.a]\npatterns = ['a']", ("tasks.a.tools:",)),
]


@pytest.mark.parametrize(("text", "expected"), [row[1:] for row in GOOD], ids=[row[0] for row in GOOD])
def test_valid_files_are_read(text: str, expected: Preferences, tmp_path: Path):
    file = tmp_path / "packetgate.toml"
    file.write_text(text, encoding="utf-8")
    assert load_preferences(file) == expected


@pytest.mark.parametrize(("text", "named"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_an_invalid_setting_is_named(text: bytes, named: tuple[str, ...], tmp_path: Path):
    file = tmp_path / "packetgate.toml"
    file.write_bytes(text)
    with pytest.raises(ConfigError) as caught:
        load_preferences(file)
    for word in (str(file), *named):
        assert word in str(caught.value)


def test_without_a_file_the_defaults_apply(tmp_path: Path):
    assert load_preferences(None) == Preferences()
    for path in (tmp_path, tmp_path / "none.toml"):
        with pytest.raises(ConfigError, match="PACKETGATE_CONFIG"):
            load_preferences(path)


def test_a_later_pattern_overrides_an_earlier():
    preferences = Preferences(
        tools={
            "files.*": ToolPreference(category="papers", examples=["first"]),
            "*.read_file": ToolPreference(brief="Read it.", external=True, examples=["second"]),
            "files.read_*": ToolPreference(category="books"),
        }
    )
    catalogue = Catalogue(SPECS, preferences=preferences)
    read, write = catalogue["files.read_file"], catalogue["files.write_file"]
    assert (read.category, read.brief, read.is_external) == ("books", "Read it.", True)
    assert read.examples == ("first", "second")
    assert (write.category, write.brief, write.is_external) == ("papers", "Write text to a file.", False)
    assert catalogue["shell.run_command"] == files_catalogue()["shell.run_command"]


def test_external_can_only_widen_the_reach_of_a_known_tool():
    def reach(external: bool | None, outward: bool | None) -> bool | None:
        preferences = Preferences(tools={"*": ToolPreference(external=external)})
        return preferences.apply(replace(SPECS[0], outward=outward)).outward

    assert [reach(True, outward) for outward in (None, False, True)] == [True, True, True]
    assert [reach(False, outward) for outward in (None, False, True)] == [None, False, True]
    assert [reach(None, outward) for outward in (None, False, True)] == [None, False, True]


def test_unmatched_patterns_are_reported_with_their_setting():
    preferences = Preferences(
        permanent=["files.*", "file.*"], pools={"x": ["shell.run"], "y": ["*"]}, tools={"mail.send": ToolPreference()}
    )
    assert preferences.unmatched_patterns([spec.name for spec in SPECS]) == (
        ("permanent", "file.*"),
        ("pools.x", "shell.run"),
        ("tools", "mail.send"),
    )
    assert len(preferences.unmatched_patterns([])) == 5
