"""The texts of tools in a prompt."""

import pytest
from support.tool_specs import PATH, a_tool, files_catalogue

from packetgate.ranking.choice import palette_text, tool_text
from packetgate.state.sections import PaletteEntry
from packetgate.tools.catalogue import ledger
from packetgate.tools.catalogue.catalogue import Catalogue

MANY = Catalogue([*(a_tool(f"notes.read_{name}", path=PATH) for name in "abcdef"), *files_catalogue().values()])


def entry(name: str, shown: str = "brief", reason: str = "ranked") -> PaletteEntry:
    return PaletteEntry.model_validate({"tool_name": name, "detail": shown, "reason": reason, "risk": MANY[name].risk})


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
    monkeypatch.setattr(ledger, "FULL_TOKENS", 10)
    return Catalogue(MANY.values())


def names(text: str) -> list[str]:
    return [line.split(":")[0][2:].partition(" (")[0] for line in text.splitlines() if line.startswith("- ")]


def test_tools_are_shown_in_full_in_brief_or_by_name():
    spec = a_tool("files.copy_file", "Copy a file. Twice.\n\nArgs:\n    path: Which.\n", path=PATH)
    full, brief = tool_text(spec, "full"), tool_text(spec, "brief")
    assert full == (
        "- files.copy_file: Copy a file. Twice.\n\nArgs:\n    path: Which.\n"
        "  arguments: {path?: string (The file to use.)}"
    )
    assert brief == "- files.copy_file: Copy a file. Twice."
    assert tool_text(spec, "name") == "- files.copy_file"


def test_a_brief_line_is_short_and_common_margins_are_removed():
    spec = a_tool("files.copy_file", f"Copy a file. {'Very ' * 17}well. {'Or not. ' * 9}")
    assert tool_text(spec, "brief") == "- files.copy_file: Copy a file."
    spec = a_tool("files.copy_file", "Copy a file.  \n\n    Use it to:\n      - copy \n    ")
    assert tool_text(spec, "full") == "- files.copy_file: Copy a file.\n\nUse it to:\n  - copy\n  arguments: {}"


def test_the_text_does_not_depend_on_the_order_of_entries(many: Catalogue):
    text = palette_text(CHOSEN, many)
    assert text == palette_text(CHOSEN[::-1], many) == palette_text(CHOSEN[3:] + CHOSEN[:3], many)
    described = [one.tool_name for one in CHOSEN if one.detail != "name"]
    assert sorted(names(text)) == sorted([*described, "notes, by name"])
    assert names(palette_text(CHOSEN[:1], many)) == ["files.read_file"]
    assert palette_text((), many) == ""
    assert "\n- files.write_file (write): " in text


def test_stable_text_comes_first(many: Catalogue):
    assert names(palette_text(CHOSEN, many)) == [
        *("notes.read_d", "notes.read_c"),  # permanent
        "notes, by name",
        *("files.write_file", "notes.read_b"),  # in brief
        *("files.read_file", "notes.read_a"),  # in full
    ]


def test_without_briefs_other_tools_are_only_named(many: Catalogue):
    lines = palette_text(CHOSEN, many, briefs=False).splitlines()
    assert {"- notes, by name: read_d, read_f, read_b", "- files, by name: write_file"} <= set(lines)
    assert sum(line.startswith("  arguments: ") for line in lines) == 3


def test_names_in_the_ledger_are_not_repeated():
    assert MANY.ledger_names_all_tools
    assert all(f"read_{name}" in MANY.long_ledger for name in "abcdef")
    assert "by name" not in palette_text(CHOSEN, MANY)
    assert "notes.read_f" not in palette_text(CHOSEN, MANY)


def test_a_missing_tool_is_left_out():
    assert names(palette_text(CHOSEN, files_catalogue())) == ["files.write_file", "files.read_file"]
