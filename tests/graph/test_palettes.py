"""Which tools a request is shown, on one server of forty, without a model."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from fastmcp import FastMCP
from langchain_core.messages import HumanMessage
from support.graphs import Session, session
from support.mcp_servers import RawTool, in_process
from support.scripted_deciders import none, scripted
from support.work_tools import PRODUCT, READS, WRITES, work_server

from packetgate.connectors.turn import Aside, Asked, Finished, Say
from packetgate.deciders.choosing import reflex_deciders
from packetgate.graph.building import build_graph
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket, TurnInput
from packetgate.state.request import TurnRequest
from packetgate.state.sections import Access
from packetgate.tools.catalogue.preferences import Preferences
from packetgate.tools.palette.choice import BRIEF_BEST, BRIEF_LEAST, WORTH_SAVING
from packetgate.tools.servers.hub import McpHub

TASKS = {name for name in READS | WRITES if "task" in name}
WEB = {name for name in READS if name.startswith("web_")}
DOCS = {name for name in READS if "doc" in name}


@pytest.fixture
async def office() -> AsyncIterator[Session]:
    async with session(reflex_deciders(), in_process(work_server())) as opened:
        yield opened


async def say(office: Session, text: str, context_type: str | None = None) -> CognitionPacket:
    """Say something to its end, or to the question that it raises; a question that waited may be put again after it."""
    events = await office.events(Say(text, TurnRequest(context_type=context_type)))
    return next(one.packet for one in events if isinstance(one, Aside | Asked | Finished))


def shown(packet: CognitionPacket) -> set[str]:
    return {name.removeprefix("office.") for name in packet.context.palette_names}


@dataclass(frozen=True)
class Case:
    request: str
    told: set[str]
    """What stands there with its description."""
    not_told: set[str]
    access: Access = Access.READ


CASES = [
    Case("List my tasks", {"list_tasks", "list_overdue_tasks"}, WEB | DOCS - {"list_doc_pages"}),
    Case("show me my tasks", {"list_tasks", "get_task"}, WEB),
    Case("Create a new task", {"create_task"}, WEB - {"web_news"} | DOCS, Access.WRITE),
    Case("Analyze project health", {"get_project", "get_project_status", "list_project_risks"}, WEB | DOCS),
    Case("Search the web for lighthouses", {*WEB}, {name for name in WRITES if "task" in name}),
    Case(f"How does {PRODUCT} work?", {*DOCS}, WEB),
    Case("Update task status", {"update_task", "get_task"}, WEB | DOCS, Access.WRITE),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.request)
async def test_the_right_few_tools_are_described(office: Session, case: Case):
    packet = await say(office, case.request, "project")
    told = {entry.tool_name.removeprefix("office.") for entry in packet.context.palette if entry.shown != "name"}
    assert packet.tool_routing is not None
    assert packet.intent.access is case.access
    assert BRIEF_LEAST <= len(told) <= BRIEF_BEST
    assert case.told <= told
    assert not case.not_told & told
    assert packet.context.palette_tokens <= WORTH_SAVING


async def test_a_new_type_of_conversation_chooses_anew_and_is_recorded(office: Session):
    before = await say(office, "Search the web for lighthouses")
    after = await say(office, "List everything", "task")
    assert (before.context.shift, after.context.shift) == ("", "from general to task")
    assert WEB & shown(before)
    assert {name for name in TASKS if name in READS} <= shown(after)
    reasons = {entry.tool_name: entry.reason for entry in after.context.palette}
    assert reasons["office.get_task"] == reasons["office.search_tasks"] == "default"
    again = await say(office, "List my tasks")
    assert (again.context.context_type, again.context.shift) == ("task", "from lighthouses, web to tasks")


async def test_a_tool_that_served_is_in_full_on_the_next_palette_of_that_session_only(office: Session):
    await say(office, "List my tasks")
    other = Session(office.graph, office.context, name="another")
    mine, theirs = await say(office, "Search the web for lighthouses"), await say(other, "Search the web for lamps")
    assert [(one.tool_name, one.shown) for one in mine.context.palette if one.reason == "recent"] == [
        ("office.list_tasks", "full")
    ]
    assert [one for one in theirs.context.palette if one.reason == "recent"] == []


async def test_permanent_tools_without_number_leave_the_tool_that_is_asked_for_its_place():
    server = FastMCP[None]("office")
    long = f"{'word ' * 90}.\n\nArgs:\n{'more ' * 300}"
    for name in (*(f"keep_{at}" for at in range(200)), "list_tasks"):
        server.add_tool(RawTool(name=name, description=long, parameters={"type": "object"}))
    preferences = Preferences(permanent=["office.keep_*"])
    async with McpHub([in_process(server)], preferences=preferences) as hub:
        graph = build_graph(scripted(none()), hub).compile()
        given = TurnInput(messages=[HumanMessage("Use list_tasks")])
        packet = CognitionPacket.model_validate(await graph.ainvoke(given, context=RoutingContext()))
    palette = {entry.tool_name: entry.reason for entry in packet.context.palette}
    assert palette["office.list_tasks"] == "ranked"
    told = next(entry.summary for entry in packet.reasoning.reflection_log if entry.step == "build_palette")
    assert "there was no room for office.keep_" in told
