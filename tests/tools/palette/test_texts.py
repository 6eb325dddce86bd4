"""How tools read in a prompt."""

import json

from support.tool_specs import PATH, a_tool, files_catalogue

from state.sections import PaletteEntry
from tools.catalogue.catalogue import Catalogue
from tools.palette.texts import describe, palette_text

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


def names(text: str) -> list[str]:
    return [line.split(":")[0].split()[1] for line in text.splitlines() if line.startswith("- ")]


def test_in_full_with_the_schema_in_brief_without():
    spec = a_tool("files.copy_file", "Copy a file. Twice.\n\nArgs:\n    path: Which.\n", path=PATH)
    full, brief = describe(spec, "full"), describe(spec, "brief")
    assert full.startswith(
        "- files.copy_file: Copy a file. Twice.\n\nArgs:\n    path: Which.\n  arguments (JSON Schema)"
    )
    assert json.loads(full.split("arguments (JSON Schema): ")[1]) == spec.input_schema
    assert brief == "- files.copy_file: Copy a file. Twice."
    assert describe(spec, "name") == "- files.copy_file"


def test_a_schema_takes_no_white_space_and_keeps_its_letters():
    spec = a_tool("a.b", schema={"type": "object", "description": "天気 é"})
    assert describe(spec, "full").endswith('{"type":"object","description":"天気 é"}')


def test_the_text_is_the_same_for_the_same_tools_and_holds_only_those():
    text = palette_text(CHOSEN, MANY)
    assert text == palette_text(CHOSEN[::-1], MANY) == palette_text(CHOSEN[3:] + CHOSEN[:3], MANY)
    assert sorted(names(text)) == sorted(one.tool_name for one in CHOSEN)
    assert names(palette_text(CHOSEN[:1], MANY)) == ["files.read_file"]
    assert palette_text((), MANY) == ""
    assert "\n- files.write_file (write): " in text


def test_what_changes_least_from_turn_to_turn_comes_first():
    assert names(palette_text(CHOSEN, MANY)) == [
        *("notes.read_d", "notes.read_c"),  # permanent
        "notes.read_f",  # by name
        *("files.write_file", "notes.read_b"),  # in brief
        *("files.read_file", "notes.read_a"),  # in full
    ]


def test_without_briefs_only_what_is_in_full_is_more_than_a_name():
    lines = palette_text(CHOSEN, MANY, briefs=False).splitlines()
    assert {"- notes.read_d", "- files.write_file", "- notes.read_b"} <= set(lines)
    assert sum("arguments (JSON Schema)" in line for line in lines) == 3


def test_a_tool_that_has_gone_is_left_out():
    assert names(palette_text(CHOSEN, files_catalogue())) == ["files.write_file", "files.read_file"]
