"""The intent stage with a selecting model decides clear cases without a model."""

import pytest
from support.packets import CONTEXT, Shelf, asking, done, packet, with_output

from packetgate.deciders.choosing import reflex_deciders
from packetgate.deciders.intent import detect_certain_intent
from packetgate.state.routing import ToolRouting
from packetgate.state.sections import Access
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.catalogue.catalogue import Catalogue

EXECUTED = with_output(done("files.read_file", path="a.txt"), "apples")
REHEARSED = done("files.write_file", ToolExecutionStatus.SKIPPED, path="a.txt", content="x")
UNKNOWN = done("files.write_file", ToolExecutionStatus.UNKNOWN, path="a.txt", content="x")
FAILED = done("files.read_file", ToolExecutionStatus.FAILED, path="a.txt")


@pytest.mark.parametrize("words", ["Hello", "Thanks!", "Good morning, how are you?"])
async def test_small_talk_needs_no_tool_and_no_catalogue(words: str):
    shelf = Shelf()
    decision = await detect_certain_intent(asking(words), shelf, CONTEXT)
    assert (decision.needs_tool, decision.reasoning, shelf.asked) == (False, "small talk", 0)


@pytest.mark.parametrize(
    ("words", "access"),
    [("Read a.txt", Access.READ), ("Please see to it", Access.READ), ("Write a.txt to b.txt", Access.WRITE)],
)
async def test_other_requests_are_left_to_selection(words: str, access: Access):
    decision = await detect_certain_intent(asking(words), Shelf(), CONTEXT)
    assert (decision.needs_tool, decision.access) == (True, access)
    assert (decision.decided_by, decision.confidence, decision.is_fallback) == ("reflex", None, False)


async def test_without_tools_no_tool_is_needed():
    decision = await detect_certain_intent(asking("Read a.txt"), Shelf(Catalogue([])), CONTEXT)
    assert (decision.needs_tool, decision.reasoning) == (False, "no tools are connected")


@pytest.mark.parametrize(
    ("routing", "needs_tool"),
    [
        (ToolRouting(calls=(EXECUTED,), complete=True), False),
        (ToolRouting(calls=(EXECUTED,), complete=False), True),
        (ToolRouting(calls=(FAILED,), complete=True), True),
        (ToolRouting(calls=(EXECUTED, FAILED), complete=True), True),
        (ToolRouting(calls=(UNKNOWN,), complete=True), True),
        (ToolRouting(calls=(EXECUTED, REHEARSED), complete=True), False),
        (ToolRouting(calls=(REHEARSED,), complete=False), True),
    ],
    ids=["all done", "more to do", "failed", "one failed", "unknown", "one a dry run", "a dry run, and more to do"],
)
async def test_a_later_pass_depends_on_the_selections_statement(routing: ToolRouting, needs_tool: bool):
    later = packet("Read a.txt and mail it").model_copy(update={"tool_routing": routing})
    assert (await detect_certain_intent(later, Shelf(), CONTEXT)).needs_tool is needs_tool


@pytest.mark.reflex
@pytest.mark.parametrize(("words", "needs_tool"), [("Read a.txt", False), ("Read a.txt, then write it to b.txt", True)])
async def test_without_a_statement_the_steps_of_the_request_decide(words: str, needs_tool: bool):
    later = packet(words, EXECUTED)
    decision = await detect_certain_intent(later, Shelf(), CONTEXT, rules=reflex_deciders().intent)
    assert decision.needs_tool is needs_tool
