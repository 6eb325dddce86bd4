import json
from typing import Any

import pytest
from support.tool_specs import PATH, a_tool, files_catalogue

from state.routing import Risk
from state.sections import Access, PaletteEntry
from tools.catalogue import Catalogue
from tools.palette import (
    PaletteRequest,
    capabilities_ledger,
    choose_palette,
    describe,
    palette_text,
    token_count,
    with_recent,
)

READS = [f"notes.read_note_{i:02}" for i in range(30)]
MANY = Catalogue([*(a_tool(name, "Read a note. " * 5, path=PATH) for name in READS), *files_catalogue().values()])


def wanted(words: str = "read a note", access: Access = Access.READ, **given: Any) -> PaletteRequest:
    return PaletteRequest(words=words, access=access, **{"size": 8, "token_budget": 2_000, **given})


def names(entries: tuple[PaletteEntry, ...]) -> list[str]:
    return [entry.tool_name for entry in entries]


def cost(entries: tuple[PaletteEntry, ...], catalogue: Catalogue) -> int:
    return sum(token_count(describe(catalogue[one.tool_name], full=one.shown == "full")) for one in entries)


@pytest.mark.parametrize("size", [1, 2, 8, 128])
def test_no_more_than_the_size_and_none_twice(size: int):
    chosen = names(choose_palette(wanted(size=size, recent=READS[3:9], permanent=READS[5:7]), MANY))
    assert len(chosen) == len(set(chosen)) == min(size, len(MANY) - 2)


@pytest.mark.parametrize("budget", [100, 150, 300, 2_000])
def test_no_more_than_the_budget(budget: int):
    chosen = choose_palette(wanted(token_budget=budget, size=128), MANY)
    assert 0 < cost(chosen, MANY) <= budget


def test_the_budget_shortens_the_best_before_it_breaks():
    huge = Catalogue([a_tool("notes.read_huge", "Read. " + "\n\nArgs: " + "x" * 50_000)])
    (only,) = choose_palette(wanted("read huge", token_budget=100), huge)
    assert only.shown == "brief"
    (only,) = choose_palette(wanted("read huge", token_budget=100, described=["notes.read_huge"]), huge)
    assert (only.shown, only.reason) == ("full", "described")


def test_never_empty_while_there_are_tools():
    for access in Access:
        for catalogue in (MANY, files_catalogue(), Catalogue([a_tool("a.run", "word " * 99, risk=Risk.EXECUTE)])):
            assert choose_palette(wanted("xyzzy", access, token_budget=1, size=1), catalogue)
    assert choose_palette(wanted(recent=["gone.tool"], described=["gone.tool"]), Catalogue()) == ()


@pytest.mark.parametrize(
    ("access", "risks"),
    [
        (Access.READ, {Risk.READ}),
        (Access.WRITE, {Risk.READ, Risk.WRITE}),
        (Access.EXECUTE, {Risk.READ, Risk.EXECUTE}),
        (Access.MIXED, {Risk.READ, Risk.WRITE, Risk.EXECUTE}),
    ],
)
def test_the_access_asked_for_limits_the_risk(access: Access, risks: set[Risk]):
    chosen = choose_palette(wanted("read or write a file or run a command", access), files_catalogue())
    assert {entry.risk for entry in chosen} == risks
    assert all(files_catalogue()[entry.tool_name].risk is entry.risk for entry in chosen)


def test_every_kind_of_claim_in_its_order():
    request = wanted(
        described=["files.write_file"],
        missed=["runCommand", "nothing.like_it"],
        permanent=["notes.read_note_20"],
        recent=["gone.tool", "notes.read_note_10"],
        default_pool=["files.read_file"],
        size=9,
    )
    chosen = choose_palette(request, MANY)
    assert [(one.tool_name, one.reason) for one in chosen[:4]] == [
        ("files.write_file", "described"),
        ("shell.run_command", "widened"),
        ("notes.read_note_20", "permanent"),
        ("notes.read_note_10", "recent"),
    ]
    assert [one.reason for one in chosen[4:]] == ["ranked"] * 4 + ["default"]
    assert {one.shown for one in chosen[:4]} == {"full"}
    assert chosen[-1].tool_name == "files.read_file"


def test_at_most_six_recent_tools():
    chosen = choose_palette(wanted("xyzzy", recent=READS[:9], size=20), MANY)
    assert [one.tool_name for one in chosen if one.reason == "recent"] == READS[:6]


def test_a_miss_lifts_the_limit_on_risk():
    before = choose_palette(wanted("run a command"), files_catalogue())
    after = choose_palette(wanted("run a command", missed=["no.such"]), files_catalogue())
    assert names(before) == ["files.read_file"]
    assert set(names(after)) == set(files_catalogue())


def test_only_the_best_ranked_are_shown_in_full():
    chosen = choose_palette(wanted(token_budget=100_000), MANY)
    assert [one.shown for one in chosen] == ["full"] * 4 + ["brief"] * 4
    assert all(one.score > 0 for one in chosen)


def test_the_text_is_the_same_for_the_same_tools_and_holds_only_those():
    chosen = choose_palette(wanted(), MANY)
    text = palette_text(chosen, MANY)
    assert text == palette_text(chosen[::-1], MANY)
    assert [line.split(":")[0][2:] for line in text.splitlines() if line.startswith("- ")] == sorted(names(chosen))
    other = palette_text(choose_palette(wanted("write a file", Access.WRITE, size=1), MANY), MANY)
    assert "files.write_file" in other
    assert "notes." not in other


def test_in_full_with_the_schema_in_brief_without():
    spec = files_catalogue()["files.write_file"]
    full, brief = describe(spec, full=True), describe(spec, full=False)
    assert json.loads(full.split("arguments (JSON Schema): ")[1]) == spec.input_schema
    assert brief == "- files.write_file: Write text to a file."


def test_the_ledger_counts_tools_by_server():
    assert capabilities_ledger(MANY).splitlines() == [
        "- files (2 tools): files.read_file, files.write_file",
        f"- notes (30 tools): {', '.join(READS[:5])}, and 25 more",
        "- shell (1 tools): shell.run_command",
    ]
    assert capabilities_ledger(Catalogue()) == "- none is connected"


def test_recent_is_newest_first_without_repeats():
    assert with_recent(("a", "b", "c"), ["c"]) == ("c", "a", "b")
    assert with_recent((), ["a", "a"]) == ("a",)
    assert with_recent(tuple("abcdef"), ["g", "c"]) == ("g", "c", "a", "b", "d", "e")
    assert with_recent(tuple("abc"), []) == ("a", "b", "c")
