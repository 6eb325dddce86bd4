"""How tools read in a prompt."""

import pytest
from support.tool_specs import PATH, a_tool, files_catalogue

from packetgate.state.sections import PaletteEntry
from packetgate.tools.catalogue import ledger
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.palette.texts import describe, palette_text

MANY = Catalogue([*(a_tool(f"notes.read_{name}", path=PATH) for name in "abcdef"), *files_catalogue().values()])


def entry(name: str, shown: str = "brief", reason: str = "ranked") -> PaletteEntry:
    return PaletteEntry.model_validate({"tool_name": name, "shown": shown, "reason": reason, "risk": MANY[name].risk})


CHOSEN = (
    entry("files.read_file", "full"),
    entry("notes.read_c", "full", "permanent"),
    entry("notes.read_b"),
    entry("notes.read_d", "brief", "permanent"),
    entry("notes.read_a", "full", "recent"),
    entry("files.write_file"),
    entry("notes.read_f", "name"),
)


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> Catalogue:
    """Return tools whose names are too many for the ledger beside the palette."""
    monkeypatch.setattr(ledger, "WHOLE_TOKENS", 10)
    return Catalogue(MANY.values())


def names(text: str) -> list[str]:
    return [line.split(":")[0][2:].partition(" (")[0] for line in text.splitlines() if line.startswith("- ")]


def test_in_full_with_the_schema_in_brief_without():
    spec = a_tool("files.copy_file", "Copy a file. Twice.\n\nArgs:\n    path: Which.\n", path=PATH)
    full, brief = describe(spec, "full"), describe(spec, "brief")
    assert full == (
        "- files.copy_file: Copy a file. Twice.\n\nArgs:\n    path: Which.\n"
        "  arguments: {path?: string (The file to use.)}"
    )
    assert brief == "- files.copy_file: Copy a file. Twice."
    assert describe(spec, "name") == "- files.copy_file"


def test_a_line_in_brief_is_a_sentence_or_two():
    spec = a_tool("files.copy_file", f"Copy a file. {'Very ' * 17}well. {'Or not. ' * 9}")
    assert describe(spec, "brief") == "- files.copy_file: Copy a file."


def test_margins_that_all_lines_share_are_left_out():
    spec = a_tool("files.copy_file", "Copy a file.  \n\n    Use it to:\n      - copy \n    ")
    assert describe(spec, "full") == "- files.copy_file: Copy a file.\n\nUse it to:\n  - copy\n  arguments: {}"


def test_the_text_is_the_same_for_the_same_tools_and_holds_only_those(many: Catalogue):
    text = palette_text(CHOSEN, many)
    assert text == palette_text(CHOSEN[::-1], many) == palette_text(CHOSEN[3:] + CHOSEN[:3], many)
    told = [one.tool_name for one in CHOSEN if one.shown != "name"]
    assert sorted(names(text)) == sorted([*told, "notes, by name"])
    assert names(palette_text(CHOSEN[:1], many)) == ["files.read_file"]
    assert palette_text((), many) == ""
    assert "\n- files.write_file (write): " in text


def test_what_changes_least_from_turn_to_turn_comes_first(many: Catalogue):
    assert names(palette_text(CHOSEN, many)) == [
        *("notes.read_d", "notes.read_c"),  # permanent
        "notes, by name",
        *("files.write_file", "notes.read_b"),  # in brief
        *("files.read_file", "notes.read_a"),  # in full
    ]


def test_without_briefs_only_what_is_in_full_is_more_than_a_name(many: Catalogue):
    lines = palette_text(CHOSEN, many, briefs=False).splitlines()
    assert {"- notes, by name: read_d, read_f, read_b", "- files, by name: write_file"} <= set(lines)
    assert sum(line.startswith("  arguments: ") for line in lines) == 3


def test_a_name_that_the_ledger_says_is_not_said_again():
    assert MANY.names_all
    assert all(f"read_{name}" in MANY.long_ledger for name in "abcdef")
    assert "by name" not in palette_text(CHOSEN, MANY)
    assert "notes.read_f" not in palette_text(CHOSEN, MANY)


def test_a_tool_that_has_gone_is_left_out():
    assert names(palette_text(CHOSEN, files_catalogue())) == ["files.write_file", "files.read_file"]
