"""Run a client's call, by the tool's own name or by a meta-tool, asking for approval where needed."""

import asyncio
import contextvars
from collections.abc import Callable, Collection, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar

import anyio
from fastmcp import Context
from fastmcp.exceptions import ToolError
from fastmcp.tools.base import ToolResult

from packetgate.connectors.proxy.asking import ANSWER, asking_result, elicited, is_modern, reply_in, waits, way_to_ask
from packetgate.connectors.proxy.gateway import PATIENCE_S, Gateway, refusal
from packetgate.connectors.proxy.results import MOST_EVENT_BYTES, by_meta_tool, direct
from packetgate.connectors.proxy.sessions import ProxySession
from packetgate.graph.pipeline import Wanted
from packetgate.state.errors import CallRefusedError, InputError, PacketgateError
from packetgate.state.packet import CognitionPacket
from packetgate.tools.execution.journal import Entry
from packetgate.tools.servers.relaying import Relay, relayed_to
from packetgate.tools.spec.tool_spec import digest_of
from packetgate.tools.usage.learning import shown_use

Result = TypeVar("Result")
How = Literal["listed", "searched", "named"]
COUNTS: dict[How, float] = {"listed": 1.0, "searched": 1.5, "named": 0.5}
"""Weight of a use for learning, by how the client found the tool."""


@dataclass(frozen=True)
class Calling:
    """Runs calls through the pipeline."""

    gateway: Gateway

    async def call_listed(self, ctx: Context, name: str, params: dict[str, Any]) -> ToolResult:
        """Call a tool that the client was shown, by its own name.

        Raises:
            ToolError: it was not, or the call is refused.
        """
        session = self.gateway.session_of(ctx)
        catalogue = await self.gateway.catalogue(session, name)
        on_list = {entry.tool_name for entry in await self.gateway.listed(session, catalogue)}
        if name not in on_list | session.seen:
            raise refusal(
                f"{name} is not on your list: call it by call_read_tool or call_changing_tool, or say with set_context "
                "what you want"
            )
        schema = catalogue[name].output_schema if name in catalogue else None
        return await self._call(ctx, Wanted(name, params), session, partial(direct, output_schema=schema), on_list)

    async def call_named(
        self, ctx: Context, name: str, params: dict[str, Any], context_id: str | None, *, only_reads: bool
    ) -> ToolResult:
        """Call any tool that the client may use, by a meta-tool. Raise ToolError if the call is refused."""
        session = self.gateway.session_of(ctx, context_id)
        name = (await self.gateway.catalogue(session, name)).exactly(name) or name
        instead = "Call it by call_changing_tool." if only_reads else ""
        return await self._call(ctx, Wanted(name, params, if_it_changes=instead), session, by_meta_tool)

    def _how(self, name: str, session: ProxySession, on_list: Collection[str]) -> How:
        if name in on_list or name in {entry.tool_name for entry in session.palette}:
            return "listed"
        return "searched" if name in session.searched else "named"

    async def _call(
        self,
        ctx: Context,
        wanted: Wanted,
        session: ProxySession,
        render: Callable[..., ToolResult],
        on_list: Collection[str] = (),
    ) -> ToolResult:
        try:
            decided = await self._decided(ctx, wanted, session)
            if isinstance(decided, ToolResult):
                return decided
            packet: CognitionPacket = decided
            entries: tuple[Entry, ...] = ()
            if not decided.routing.calls[0].status.is_final:
                with relayed_to(_relay_to(ctx)):
                    packet, entries = await _cancelled_once(self.gateway.chain.executed(decided))
        except (CallRefusedError, InputError) as error:
            raise refusal(str(error)) from error
        except PacketgateError as error:
            raise ToolError(str(error)) from error
        session.remember_call(packet)
        self.gateway.keep_handle(ctx, session, packet)
        call = packet.routing.calls[0]
        counts = COUNTS[self._how(call.tool_name, session, on_list)]
        use = shown_use(call, session.query, session.palette, counts, packet.header)
        self.gateway.recorder.ended(packet, use, entries)
        most = MOST_EVENT_BYTES if ctx.transport == "streamable-http" else None
        return await asyncio.to_thread(render, packet, self.gateway.kept.file, most)

    async def _decided(self, ctx: Context, wanted: Wanted, session: ProxySession) -> CognitionPacket | ToolResult:
        way = way_to_ask(ctx)
        waiting = self.gateway.pending.take(ctx.request_state)
        if waiting is not None:
            packet, waited_s = waiting
            reply = reply_in((ctx.input_responses or {}).get(ANSWER), packet, waited_s)
            return await self.gateway.chain.answered(packet, reply)
        if way == "nobody":
            return await self._answered_elsewhere(ctx, wanted, session)
        packet = await self.gateway.chain.wanted(wanted, session)
        if packet.governance.question is None:
            return packet
        if way == "input_required":
            return asking_result(packet, self.gateway.pending.put(packet))
        return await self.gateway.chain.answered(packet, await elicited(ctx, packet))

    async def _answered_elsewhere(self, ctx: Context, wanted: Wanted, session: ProxySession) -> CognitionPacket:
        """Return the packet of a call whose client cannot ask; if it needs approval, park it.

        The same call after the approval returns the parked call's result: it ran when it was approved.

        Raises:
            CallRefusedError: it waits for an answer.
        """
        stateless = is_modern(ctx) and ctx.transport != "stdio" and not session.query
        scope = session.client if stateless else session.session_id
        key = digest_of([scope, wanted.name, dict(wanted.params)])
        packet = self.gateway.pending.parked(key)
        question = packet.governance.question if packet else None
        if packet is None or (question is not None and question.has_lapsed):
            packet = await self.gateway.chain.wanted(wanted, session, apart=True)
            if packet.governance.question is None:
                return packet
            await self.gateway.recorder.parked(packet)
        else:
            packet = await self.gateway.recorder.as_it_stands(packet)
        if not packet.routing.calls[0].status.is_final:
            self.gateway.pending.park(key, packet)
            raise CallRefusedError(waits(packet))
        return packet


async def _cancelled_once(work: Coroutine[Any, Any, Result]) -> Result:
    """Await work that is cancelled only once when its request is cancelled.

    A request is cancelled repeatedly until it ends, which would interrupt the cancellation sent to the server.
    """
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.wait([task], timeout=PATIENCE_S)
        raise


def _relay_to(ctx: Context) -> Relay:
    """Return the relay of a server's progress and log messages to the client of the call.

    They arrive in the task that reads from the server, so the request's context is copied.
    """
    here = contextvars.copy_context()

    async def progress(done: float, total: float | None, message: str | None) -> None:
        await asyncio.create_task(ctx.report_progress(done, total, message), context=here.copy())

    async def log(text: str, level: Any, logger: str | None) -> None:
        await asyncio.create_task(ctx.log(text, level=level, logger_name=logger), context=here.copy())

    return Relay(progress, log)
