"""The intent stage without a language model."""

import pytest
from support.packets import CONTEXT, Shelf, asking, done, packet

from packetgate.reflex.intent import detect_by_reflex
from packetgate.state.sections import Access
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.catalogue.catalogue import Catalogue


async def test_small_talk_does_not_wait_for_servers():
    shelf = Shelf()
    decision = await detect_by_reflex(asking("Hello, how are you?"), shelf, CONTEXT)
    assert (decision.needs_tool, shelf.asked) == (False, 0)
    assert decision.reasoning == "small talk"


@pytest.mark.parametrize(
    ("request_", "access"),
    [
        ("Read README.md", Access.READ),
        ("What does pyproject.toml say?", Access.READ),
        ("Run `ls`", Access.EXECUTE),
        ("Delete old.txt", Access.WRITE),
        ("Write 'x' to a.txt and run `b`", Access.MIXED),
        ("Find the files about taxes", Access.READ),
    ],
)
async def test_requests_that_need_a_tool(request_: str, access: Access):
    decision = await detect_by_reflex(asking(request_), Shelf(), CONTEXT)
    assert (decision.needs_tool, decision.access) == (True, access)


@pytest.mark.parametrize(
    "request_",
    [
        "What is the meaning of life?",
        "Book a flight to Rome",
        "How do I write a file?",
        "My cat is called Minka",
        "Don't delete a.txt",
        "42",
    ],
)
async def test_requests_that_need_no_tool(request_: str):
    decision = await detect_by_reflex(asking(request_), Shelf(), CONTEXT)
    assert not decision.needs_tool


async def test_without_tools_no_tool_is_needed():
    decision = await detect_by_reflex(asking("Read README.md"), Shelf(Catalogue()), CONTEXT)
    assert (decision.needs_tool, decision.reasoning) == (False, "no tools are connected")


@pytest.mark.parametrize(
    ("request_", "used", "status", "needs"),
    [
        ("Read a.txt then read b.txt", 1, ToolExecutionStatus.EXECUTED, True),
        ("Read a.txt then read b.txt", 2, ToolExecutionStatus.EXECUTED, False),
        ("Read a.txt then read b.txt", 1, ToolExecutionStatus.FAILED, False),
        ("Read a.txt then read b.txt", 1, ToolExecutionStatus.SKIPPED, False),
        ("Read a.txt", 1, ToolExecutionStatus.EXECUTED, False),
        ("Read a.txt then read b.txt then read c.txt then read d.txt", 3, ToolExecutionStatus.EXECUTED, True),
    ],
)
async def test_later_passes_follow_the_steps_of_the_request(
    request_: str, used: int, status: ToolExecutionStatus, needs: bool
):
    later = packet(request_, done("files.read_file", status, path="a.txt"), reinjection_count=used, step=used - 1)
    shelf = Shelf()
    assert (await detect_by_reflex(later, shelf, CONTEXT)).needs_tool is needs
    assert shelf.asked == 0
