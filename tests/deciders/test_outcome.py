"""A selection becomes calls only after checks of the palette, the schema and earlier calls."""

import pytest
from support.origins import words
from support.packets import CONTEXT, FILES, done, packet
from support.scripted_deciders import call, calls, clarify, describe, none, wanted

from packetgate.deciders.outcome import routing_after_selection, routing_from_queue
from packetgate.deciders.protocols import Selection
from packetgate.state.base import ConfidenceSource
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import Risk, ToolCall, ToolRouting
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.checks.checking import CheckedCall

S = ToolExecutionStatus
READ = call("files.read_file", path="a.txt")


def settled(selection: Selection, given: CognitionPacket | None = None) -> ToolRouting:
    return routing_after_selection(selection, given or packet("Read a.txt"), FILES, CONTEXT)


def test_a_valid_call_is_recorded():
    routing = settled(READ)
    (made,) = routing.calls
    assert routing.outcome == "call"
    assert (made.tool_name, made.params, made.risk) == ("files.read_file", {"path": "a.txt"}, Risk.READ)
    assert (words(made.provenance), made.selection_confidence) == ({"path": "user"}, 0.8)


def test_each_confidence_has_its_source():
    """Only one of two calls has a measured confidence."""
    read = wanted("files.read_file", path="a.txt").model_copy(update={"confidence": 0.6})
    selection = calls(read, wanted("files.list_directory", path="a.txt"))
    stated = selection.model_copy(update={"confidence_source": ConfidenceSource.STATED})
    assert [(made.selection_confidence, made.selection_confidence_source) for made in settled(stated).calls] == [
        (0.6, ConfidenceSource.MEASURED),
        (0.8, ConfidenceSource.STATED),
    ]


def test_a_call_is_repaired_before_it_is_checked():
    routing = settled(call("call_tool", name="mcp__files__read_file", arguments={"pth": "a.txt"}))
    (made,) = routing.calls
    assert (made.tool_name, made.params, words(made.provenance)) == (
        "files.read_file",
        {"path": "a.txt"},
        {"path": "user"},
    )
    assert [(one.problem, one.is_repaired) for one in routing.corrections] == [
        ("wrapper", True),
        ("misspelt_parameter", True),
    ]
    assert routing.note == ""


@pytest.mark.parametrize("name", ["files.no_such_tool", "files_read_file", ""])
def test_a_call_that_the_decider_checked_is_checked_again(name: str):
    claimed = wanted(name, path="a.txt").model_copy(update={"checked": CheckedCall(name, {"path": "a.txt"})})
    assert settled(calls(claimed)).calls == ()
    sound = wanted("x").model_copy(update={"checked": CheckedCall("files.read_file", {"path": 5})})
    assert settled(calls(sound)).calls == ()


@pytest.mark.parametrize(
    ("selection", "given", "outcome"),
    [
        (READ, packet("Read a.txt"), "call"),
        (none("no"), packet("Read a.txt"), "none"),
        (clarify("Which?"), packet("Read"), "clarify"),
        (clarify("Which?"), packet("Read", clarifications=("a",)), "clarify"),
        (clarify("Which?"), packet("Read", clarifications=("a", "b")), "none"),
        (describe("files.read_file"), packet("Read"), "describe"),
        (describe("files.read_file"), packet("Read", describe_rounds=1), "describe"),
        (describe("files.read_file"), packet("Read", describe_rounds=2), "none"),
        (call("files.burn"), packet("Read"), "miss"),
        (call("files.burn"), packet("Read", missed_tools=("files.shred",), palette_widened=True), "none"),
        (call("files.burn"), packet("Read", missed_tools=("files.shred",)), "miss"),
        (call("files.read_file"), packet("Read"), "none"),
        (calls(), packet("Read"), "none"),
        (READ, packet("Read a.txt", done("files.read_file", path="a.txt")), "none"),
        (READ, packet("Read a.txt", past_calls=(done("files.read_file", path="a.txt"),)), "none"),
        (READ, packet("Read a.txt", done("files.read_file", path="b.txt")), "call"),
        (READ, packet("Read a.txt", done("files.list_directory", path="a.txt")), "call"),
    ],
)
def test_each_selection_has_its_outcome(selection: Selection, given: CognitionPacket, outcome: str):
    routing = settled(selection, given)
    assert routing.outcome == outcome
    assert bool(routing.calls) is (outcome == "call")
    assert bool(routing.note) is (outcome == "none")
    assert routing.past_calls == given.routing.all_calls


def reads(count: int) -> ToolRouting:
    """Return the routing of a selection of `count` reads."""
    return settled(calls(*(wanted("files.read_file", path=f"{number}.txt") for number in range(count))))


def paths(made: tuple[ToolCall, ...]) -> list[object]:
    return [call.params["path"] for call in made]


def from_queue(routing: ToolRouting) -> ToolRouting:
    """Return the routing of the next pass."""
    given = packet("Read").with_update({"tool_routing": routing.next_pass()})
    return routing_from_queue(given, CONTEXT)


def test_calls_are_limited_to_the_maximum_and_the_next_pass_makes_the_others():
    first = reads(9)
    assert CONTEXT.max_parallel_calls == 4
    assert paths(first.calls) == ["0.txt", "1.txt", "2.txt", "3.txt"]
    ran = tuple(one.changed(status=S.APPROVED) for one in first.calls)
    second = from_queue(first.changed(calls=ran))
    assert paths(second.calls) == ["4.txt", "5.txt", "6.txt", "7.txt"]
    assert paths(second.queued_calls) == ["8.txt"]
    assert (second.outcome, second.step, second.past_calls, second.step_calls) == ("call", 0, ran, ran + second.calls)
    last = from_queue(second)
    assert (last.queued_calls, last.step, len(last.all_calls)) == ((), 0, 9)
    assert (last.next_pass().step, last.next_pass().step_calls) == (1, ())


def test_calls_beyond_the_last_pass_are_named():
    stopped = reads(6).stopped_at_limit()
    assert "files.read_file(path=4.txt), files.read_file(path=5.txt)" in stopped.note
    assert stopped.queued_calls == ()


def test_describe_accepts_aliases_and_suggests_near_names():
    routing = settled(describe("read_file", "files.read_file", "files.writ_file"))
    assert routing.described_tools == ("files.read_file",)
    assert "files.write_file" in routing.suggestions


@pytest.mark.parametrize(
    ("decided_by", "left_out", "widened", "outcome"),
    [
        ("model", 3, False, "miss"),
        ("model", 0, False, "none"),
        ("model", 3, True, "none"),
        ("reflex", 3, False, "none"),
    ],
)
def test_no_choice_from_a_narrow_palette_widens_it_once(decided_by: str, left_out: int, widened: bool, outcome: str):
    given = packet("Read a.txt", palette_widened=widened)
    given = given.model_copy(update={"context": given.context.model_copy(update={"palette_left_out": left_out})})
    routing = settled(none("no").model_copy(update={"decided_by": decided_by}), given)
    assert (routing.outcome, routing.palette_widened) == (outcome, widened or outcome == "miss")
    assert routing.missed_tools == ()
