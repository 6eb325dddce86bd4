"""`tools/resolve`: the proxy's answers, and the effects of its servers' answers."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client, FastMCP
from fastmcp.client.transports import StreamableHttpTransport
from fastmcp.server.extensions import MethodBinding, ServerExtension
from mcp import MCPError
from mcp.client.extension import advertise
from mcp_types import INVALID_PARAMS, MISSING_REQUIRED_CLIENT_CAPABILITY, ToolAnnotations
from support.mcp_servers import in_process
from support.proxies import LEGACY, Offering, gateway_over, served

from packetgate.connectors.proxy.gateway import Gateway
from packetgate.gate.facts import CHOSEN_BY_CLIENT, Facts
from packetgate.gate.gate import Gate
from packetgate.gate.journal import MemoryJournal
from packetgate.state.origins import FlowLabel, SessionLabel
from packetgate.state.routing import Risk, ToolCall, ToolResult
from packetgate.state.sections import Header
from packetgate.tools.catalogue.preferences import Preferences
from packetgate.tools.spec.tool_spec import TOOL_RESOLUTION
from packetgate.toolsets.servers.hub import McpHub
from packetgate.toolsets.servers.resolution import (
    RESOLVE_TOOL,
    ResolveToolParams,
    ResolveToolRequest,
    ResolveToolResult,
)

READS = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
CHANGES = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": False}
OUTSIDE = {**READS, "openWorldHint": True}
LEAKED = "the vault opens with forty-two turns to the left"
MARKED = {TOOL_RESOLUTION: {"resolvable": True}}


class Resolver(ServerExtension):
    """The extension of an upstream server. `answer` computes the answer, or raises an error."""

    identifier = TOOL_RESOLUTION

    def __init__(self, answer: Any) -> None:
        self._answer = answer
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def methods(self) -> Sequence[MethodBinding]:
        return [MethodBinding(RESOLVE_TOOL, ResolveToolParams, self._resolve)]

    async def _resolve(self, _: Any, params: ResolveToolParams) -> dict[str, Any]:
        self.asked.append((params.name, params.arguments))
        if callable(self._answer):
            return await self._answer()
        return {"resultType": "complete", "name": params.name, "annotations": self._answer}


async def _hang() -> dict[str, Any]:
    await asyncio.sleep(60)
    return {}


async def _refuse() -> dict[str, Any]:
    raise MCPError(INVALID_PARAMS, "no such note")


async def _misname() -> dict[str, Any]:
    return {"resultType": "complete", "name": "other", "annotations": READS}


async def _replace_schema() -> dict[str, Any]:
    return {"resultType": "complete", "name": "manage_notes", "annotations": {**READS, "inputSchema": {}}}


def notes(answer: Any = READS, tool: str = "manage_notes", **more: Any) -> tuple[Offering, Resolver]:
    """Return a server whose tool can be resolved, and its resolver."""
    offering, resolver = Offering("notes"), Resolver(answer)
    offering.server.add_extension(resolver)
    offering.offer(tool, "action", meta=MARKED, **more)
    return offering, resolver


@pytest.mark.parametrize(
    ("answer", "trusted", "tool", "hints", "risk"),
    [
        (READS, True, "manage_notes", None, "read"),
        (READS, False, "manage_notes", None, "write"),
        (READS, True, "send_notes", None, "write"),
        (CHANGES, True, "manage_notes", None, "write"),
        (CHANGES, True, "list_notes", {"read_only_hint": True}, "write"),
        (READS, True, "list_notes", {"read_only_hint": True}, "read"),
        ({**READS, "readOnlyHint": "yes"}, True, "manage_notes", None, "write"),
        ({"readOnlyHint": True}, True, "manage_notes", None, "write"),
        (_misname, True, "manage_notes", None, "write"),
        (_replace_schema, True, "manage_notes", None, "write"),
        (_hang, True, "manage_notes", None, "write"),
        (_refuse, True, "manage_notes", None, "refused"),
        (_refuse, False, "manage_notes", None, "write"),
    ],
)
async def test_only_a_trusted_server_lowers_the_risk_of_a_call(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    answer: Any,
    trusted: bool,
    tool: str,
    hints: dict[str, bool] | None,
    risk: str,
):
    monkeypatch.setattr("packetgate.toolsets.servers.connection._HINTS_TIMEOUT_S", 0.5)
    annotations = {"annotations": ToolAnnotations(**hints)} if hints else {}
    offering, resolver = notes(answer, tool, **annotations)
    async with McpHub([in_process(offering.server, trusted=trusted)]) as hub:
        catalogue = await hub.catalogue()
        facts = Facts(Header(session_id="s"), catalogue, frozenset(catalogue))
        (call,) = await gate(hub).judge([asked_call(facts, f"notes.{tool}")], facts)
    assert resolver.asked == [(tool, {"action": "show"})] * trusted
    assert offering.ran == []
    assert call.verdict is not None
    assert ("refused" if call.verdict.effect == "refuse" else str(call.risk)) == risk


@pytest.mark.parametrize(("answer", "is_outside"), [(OUTSIDE, True), (READS, False)])
async def test_any_server_can_state_that_a_call_reaches_outside(answer: Any, is_outside: bool):
    offering, _ = notes(answer, annotations=ToolAnnotations(open_world_hint=False))
    async with McpHub([in_process(offering.server, trusted=True)]) as hub:
        catalogue = await hub.catalogue()
        facts = Facts(Header(session_id="s"), catalogue, frozenset(catalogue))
        (call,) = await gate(hub).judge([asked_call(facts, "notes.manage_notes")], facts)
    assert call.open_world is is_outside


async def test_a_server_is_not_asked_about_a_call_that_may_leak_data():
    offering, resolver = notes(OUTSIDE)
    mail = ToolCall(tool_name="mail.read", risk=Risk.READ, result=ToolResult(success=True, output=LEAKED))
    labels = (SessionLabel(label=FlowLabel.PRIVATE, source="mail.read"),)
    async with McpHub([in_process(offering.server, trusted=True)]) as hub:
        catalogue = await hub.catalogue()
        facts = Facts(Header(session_id="s"), catalogue, frozenset(catalogue), earlier=(mail,), labels=labels)
        params = {"action": LEAKED}
        traced = facts.traced_call(catalogue["notes.manage_notes"], params, selection_reasoning=CHOSEN_BY_CLIENT)
        (call,) = await gate(hub).judge([traced], facts)
    assert resolver.asked == []
    assert call.is_flagged
    assert call.verdict is not None
    assert call.verdict.effect == "dry_run"  # the tool is a write


async def test_a_server_that_does_not_offer_the_extension_is_not_asked():
    offering, resolver = Offering("notes"), Resolver(READS)
    offering.offer("manage_notes", "action", meta=MARKED)
    offering.offer("change_notes", "action")
    async with McpHub([in_process(offering.server, trusted=True)]) as hub:
        assert [spec.ask_hints for spec in (await hub.catalogue()).values()] == [None, None]
    offering.server.add_extension(resolver)
    async with McpHub([in_process(offering.server, trusted=True)]) as hub:
        specs = await hub.catalogue()
        assert [name for name, spec in specs.items() if spec.ask_hints] == ["notes.manage_notes"]


def gate(hub: McpHub) -> Gate:
    return Gate(MemoryJournal(), hub.call)


def asked_call(facts: Facts, name: str) -> ToolCall:
    return facts.traced_call(facts.catalogue[name], {"action": "show"}, selection_reasoning=CHOSEN_BY_CLIENT)


@asynccontextmanager
async def resolving_client(
    home: Path, *servers: Any, kind: Any = "auto", declares: bool = True, preferences: Preferences | None = None
) -> AsyncIterator[tuple[Client[Any], Gateway]]:
    extensions = [advertise(TOOL_RESOLUTION)] if declares else []
    async with (
        gateway_over(*servers, home=home, preferences=preferences, allow_write_tools=True) as gateway,
        served(gateway) as url,
        Client(StreamableHttpTransport(url), mode=kind, extensions=extensions) as client,
    ):
        yield client, gateway


async def resolve(client: Client[Any], name: str, **arguments: Any) -> dict[str, Any]:
    request = ResolveToolRequest(params=ResolveToolParams(name=name, arguments=arguments))
    result = await client.session.send_request(request, ResolveToolResult)
    assert (result.result_type, result.name) == ("complete", name)
    return result.annotations.model_dump(by_alias=True)


def database() -> FastMCP[Any]:
    """Return a server whose tool reads or changes data, depending on its SQL."""
    server: FastMCP[Any] = FastMCP("base")

    @server.tool(annotations={"readOnlyHint": True, "openWorldHint": False})
    def ask_sql(sql: str) -> str:
        """Query the database with SQL."""
        pytest.fail("a resolved call ran")

    @server.tool
    def delete_row(number: int) -> str:
        """Delete a row."""
        pytest.fail("a resolved call ran")

    return server


@pytest.mark.parametrize("kind", ["auto", LEGACY])
async def test_the_proxy_resolves_calls_and_leaves_no_trace(tmp_path: Path, kind: str):
    async with resolving_client(tmp_path, in_process(database(), trusted=True), kind=kind) as (client, gateway):
        offered = client.session.server_capabilities.extensions or {}  # type: ignore[union-attr]
        assert offered.get(TOOL_RESOLUTION) == (None if kind == LEGACY else {})  # the SDK omits it in `initialize`
        tools = {tool.name: tool for tool in await client.list_tools()}
        assert {name for name, tool in tools.items() if TOOL_RESOLUTION in (tool.meta or {})} == {"base__ask_sql"}
        assert await resolve(client, "base__ask_sql", sql="SELECT 1") == READS
        assert await resolve(client, "base__ask_sql", sql="DROP TABLE rows") == CHANGES
        for name, arguments, error in [
            ("base__ask_sql", {"sql": 5}, "sql"),
            ("base__ask_sql", {}, "sql"),
            ("base__delete_row", {"number": 5}, "is not a tool with calls to resolve"),
            ("nothing", {}, "is not a tool with calls to resolve"),
        ]:
            with pytest.raises(MCPError, match=error) as refused:
                await resolve(client, name, **arguments)
            assert refused.value.error.code == INVALID_PARAMS
        assert not gateway.parked_calls
        assert not gateway.open_questions
        assert [row async for row in gateway.gate.journal.rows()] == []  # type: ignore[attr-defined]


async def test_a_call_that_the_policy_denies_is_not_resolved(tmp_path: Path):
    denying = Preferences.model_validate(
        {"policy": {"rules": [{"effect": "deny", "tool": "base.ask_sql", "arguments": {"sql": "*secret*"}}]}}
    )
    async with resolving_client(tmp_path, in_process(database(), trusted=True), preferences=denying) as (client, _):
        assert await resolve(client, "base__ask_sql", sql="SELECT 1") == READS
        with pytest.raises(MCPError, match="denied by a policy rule"):
            await resolve(client, "base__ask_sql", sql="SELECT secret")


async def test_a_client_must_declare_the_extension(tmp_path: Path):
    async with resolving_client(tmp_path, in_process(database(), trusted=True), declares=False) as (client, _):
        assert not [tool.name for tool in await client.list_tools() if TOOL_RESOLUTION in (tool.meta or {})]
        with pytest.raises(MCPError, match="must declare") as refused:
            await resolve(client, "base__ask_sql", sql="SELECT 1")
        assert refused.value.error.code == MISSING_REQUIRED_CLIENT_CAPABILITY


async def test_the_proxy_forwards_the_resolution_of_a_trusted_server(tmp_path: Path):
    offering, resolver = notes()
    async with resolving_client(tmp_path, in_process(offering.server, trusted=True)) as (client, _):
        (tool,) = [tool for tool in await client.list_tools() if tool.name == "notes__manage_notes"]
        assert (tool.meta or {})[TOOL_RESOLUTION] == {"resolvable": True}
        assert await resolve(client, "notes__manage_notes", action="show") == READS
        assert resolver.asked == [("manage_notes", {"action": "show"})]
        result = await client.call_tool_mcp("notes__manage_notes", {"action": "show"})
        assert not result.is_error
        assert offering.ran == ["manage_notes"]
        assert len(resolver.asked) == 2  # the call itself sends another request
