"""Check, review, ask about and run calls that a client chose, for the proxy and the middleware.

Each call has its own packet, so that the stages of a turn can review and run it without a graph.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

from langgraph.runtime import ExecutionInfo, Runtime
from langgraph.store.base import BaseStore
from pydantic import JsonValue

from packetgate.deciders.protocols import CallReview, Review
from packetgate.graph.changes import CALL_REVIEWED, entries_of
from packetgate.nodes.execute_tool import execute_tool
from packetgate.nodes.review_selection import apply_review
from packetgate.state.base import ConfidenceSource
from packetgate.state.codes import Code
from packetgate.state.context import RoutingContext
from packetgate.state.errors import CallRefusedError
from packetgate.state.packet import CognitionPacket, PacketUpdate
from packetgate.state.routing import Risk, ToolCall, ToolRouting
from packetgate.state.sections import PacketState, PaletteEntry, Status
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.approval.decisions import ALREADY_ANSWERED, CALL_CHANGED, claim, effects_of_reply, expire_question
from packetgate.tools.approval.questions import approval_update
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.toolbox import AllowedTools, Toolbox
from packetgate.tools.checks.checking import repair_call, validate_call
from packetgate.tools.execution.journal import CALL_MARKED, ENDED, STARTED, BufferedJournal, Entry, Journal
from packetgate.tools.execution.permission import call_digest, refusal_code
from packetgate.tools.execution.running import run_dry_runs
from packetgate.tools.provenance.flagging import origins_of
from packetgate.tools.provenance.sources import source_texts
from packetgate.tools.risk.call import with_risk
from packetgate.tools.risk.tool import confirm_read_hint
from packetgate.tools.spec.tool_spec import digest_of
from packetgate.tools.text.result_store import session_results

CHOSEN_BY_CLIENT = "chosen by the client, which gave no reason"


@dataclass(frozen=True)
class RequestedCall:
    """A call that a client requests."""

    name: str
    params: Mapping[str, Any]
    refusal_if_changing: str = ""
    """For a call that must only read: the instruction to the client if the call would change something."""
    call_id: str = ""
    """Journal id of a call that may be proposed again; if empty, the call gets a new id."""


class Caller(Protocol):
    """A client's conversation. The packets of `new_packet` hold its labels."""

    @property
    def sources(self) -> tuple[ToolCall, ...]:
        """Earlier calls. The values of a call are traced to the outputs of these calls."""
        ...

    @property
    def has_own_words(self) -> bool:
        """Whether the words of `new_packet` are the user's: a client that has read outputs may have written others."""
        ...

    def new_packet(self, entry: PaletteEntry, *, own_session: bool = False) -> CognitionPacket:
        """Return the packet of a call with the user's words; the palette contains only `entry`.

        Args:
            own_session: use a new session, where the call can wait for an answer beside other calls.
        """
        ...


@dataclass(frozen=True)
class Pipeline:
    """Proposes, asks about and runs the calls that a client requests."""

    tools: Toolbox
    journal: Journal
    channel: str
    not_found_hint: str = ""
    """Appended to the refusal of an unknown tool."""
    _proposed: dict[str, tuple[Entry, ...]] = field(default_factory=dict, kw_only=True)
    """Unwritten journal entries of approved calls, by packet id. They are written when the call starts."""
    _running: set[str] = field(default_factory=set, kw_only=True)
    """Ids of packets whose calls run in this process."""

    @property
    def store(self) -> BaseStore | None:
        """The store of tool uses, or None."""
        return None

    def toolbox(self, settings: RoutingContext) -> AllowedTools:
        """Return the tools that a client may use."""
        return AllowedTools(self.tools, settings, self.channel)

    async def propose_call(
        self, requested: RequestedCall, caller: Caller, settings: RoutingContext, *, own_session: bool = False
    ) -> CognitionPacket:
        """Return the packet of a checked, reviewed and journaled call; it may wait for an answer.

        Args:
            own_session: nobody can be asked during the request, so a call that may need an answer gets a new session.

        Raises:
            CallRefusedError: the tool does not exist, an argument is invalid, or the call would change something.
        """
        toolbox = self.toolbox(settings)
        catalogue = await toolbox.catalogue()
        hint = self.not_found_hint
        packet, proposal = await asyncio.to_thread(
            _proposal, requested, caller, catalogue, hint, own_session=own_session
        )
        runtime = self._runtime(packet, can_ask=True)
        (call,) = packet.routing.calls
        basis = {"confidence_source": ConfidenceSource.UNJUDGED, "reasoning": CHOSEN_BY_CLIENT}
        accepted = CallReview(call_id=call.call_id, approved=True, confidence=1.0, **basis)
        review = Review(reviews=(accepted,), decided_by="reflex", confidence_source=ConfidenceSource.UNJUDGED)
        review_update = await apply_review(packet, runtime, review, catalogue, toolbox=toolbox, journal=self.journal)
        entries = (
            *entries_of(CognitionPacket(), proposal),
            *entries_of(packet, review_update),
        )
        entries = tuple(entry for entry in entries if entry.event != CALL_REVIEWED)  # the call had no review
        packet = packet.with_update(review_update)
        if requested.call_id and packet.governance.question:
            question = packet.governance.question.changed(question_id=requested.call_id)
            packet = packet.with_update({"governance": packet.governance.changed(question=question)})
        call = packet.routing.calls[0]
        if call.status is ToolExecutionStatus.APPROVED and (
            started_at := await self._unfinished_since(call, packet, catalogue)
        ):
            doubtful_call = call.with_unfinished_run(started_at)
            packet = packet.with_update({"tool_routing": packet.routing.changed(calls=(doubtful_call,))})
            packet, dry_runs = await run_dry_runs((doubtful_call,), packet, catalogue, toolbox, self.journal)
            packet = packet.with_update(approval_update((doubtful_call,), packet, catalogue, dry_runs))
        if packet.routing.calls[0].status is ToolExecutionStatus.APPROVED:
            self._proposed[packet.header.packet_id] = entries
        else:
            await self.journal.record(*entries)
        return packet

    async def answer_question(self, packet: CognitionPacket, reply: Any) -> CognitionPacket:
        """Return the packet with the user's decision, which is accepted only once.

        Raises:
            RequestError: the reply cannot be read.
            CallRefusedError: the call has changed since the question, or was decided before.
        """
        question = packet.governance.question
        if question is None:
            return packet
        if question.has_expired:
            update = expire_question(packet)
        else:
            catalogue = await self.toolbox(packet.governance.settings).catalogue()
            decision = await effects_of_reply(reply, question, packet, catalogue)
            if decision.changed_tools:
                message = f"{', '.join(decision.changed_tools)}: {CALL_CHANGED}; call the tool again for a new question"
                raise CallRefusedError(message, code=Code.CALL_CHANGED)
            if not await claim(decision, question, packet, self.journal):
                raise CallRefusedError(ALREADY_ANSWERED, code=Code.ANSWER_TAKEN)
            update = decision.update
        governance = (update.get("governance") or packet.governance).changed(question=None)
        update = {**update, "governance": governance}
        await self.journal.record(*entries_of(packet, update))
        return packet.with_update(update)

    async def run_call(
        self, packet: CognitionPacket, tools: Toolbox | None = None
    ) -> tuple[CognitionPacket, tuple[Entry, ...]]:
        """Run the call if it may run; return its packet and the journal entries to write with its end.

        `tools` replaces the pipeline's tools.
        """
        toolbox = AllowedTools(tools or self.tools, packet.governance.settings, self.channel)
        runtime = self._runtime(packet, can_ask=False)
        entries_before = self._proposed.pop(packet.header.packet_id, ())
        change_entries = _change_entries(packet, await toolbox.catalogue())
        journal = BufferedJournal(self.journal, *entries_before, *change_entries)
        self._running.add(packet.header.packet_id)
        try:
            update = await execute_tool(packet, runtime, toolbox=toolbox, journal=journal)
        finally:
            self._running.discard(packet.header.packet_id)
        await journal.flush()
        finished = packet.with_update({**update, "status": Status(state=PacketState.COMPLETED)})
        return finished, tuple(entries_of(packet, update))

    async def _unfinished_since(self, call: ToolCall, packet: CognitionPacket, catalogue: Catalogue) -> datetime | None:
        """Return the start of an earlier, equal change by this client if its end was not recorded; otherwise None."""
        if call.risk is Risk.READ:
            return None
        change_rows = await self.journal.call_entries("", _change_digest(call, packet, catalogue))
        run = change_rows[-1].entry.detail if change_rows else {}
        if not run or run["packet"] in self._running:
            return None
        rows = await self.journal.call_entries(str(run["packet"]), str(run["call"]))
        started = [row.at for row in rows if row.entry.event == STARTED]
        return started[-1] if started and not any(row.entry.event == ENDED for row in rows) else None

    def _runtime(self, packet: CognitionPacket, *, can_ask: bool) -> Runtime[RoutingContext]:
        thread = packet.header.session_id if can_ask else None
        asking = ExecutionInfo(checkpoint_id="", checkpoint_ns="", task_id="", thread_id=thread)
        return Runtime(context=packet.governance.settings, store=self.store, execution_info=asking)


def _change_digest(call: ToolCall, packet: CognitionPacket, catalogue: Catalogue) -> str:
    """Return a digest of client, tool definition and arguments. The journal finds earlier, equal changes by it."""
    return digest_of([packet.header.origin, packet.header.person, call_digest(call, catalogue[call.tool_name])])


def _change_entries(packet: CognitionPacket, catalogue: Catalogue) -> tuple[Entry, ...]:
    """Return the journal entry that maps a change to its run; empty for a read, or if the call does not run."""
    call, header = packet.routing.calls[0], packet.header
    runs = call.status is ToolExecutionStatus.APPROVED and packet.governance.settings.allows(call.risk)
    if call.risk is Risk.READ or not runs or call.tool_name not in catalogue:
        return ()
    run: dict[str, JsonValue] = {"packet": header.packet_id, "call": call.call_id}
    return (Entry(CALL_MARKED, header.session_id, call_id=_change_digest(call, packet, catalogue), detail=run),)


def _proposal(
    requested: RequestedCall, caller: Caller, catalogue: Catalogue, hint: str, *, own_session: bool
) -> tuple[CognitionPacket, PacketUpdate]:
    """Return a packet with the call, and the sections that the call adds. Blocking."""
    checked = repair_call(requested.name, requested.params, catalogue)
    if checked.tool_name not in catalogue:
        raise CallRefusedError(_unknown_tool_message(requested.name, catalogue) + hint, code=Code.TOOL_UNKNOWN)
    checked = validate_call(checked, frozenset({checked.tool_name}), catalogue)
    if checked.problems:
        message = " ".join(problem.message for problem in checked.problems)
        raise CallRefusedError(message, code=refusal_code(checked.problems[0]))
    spec = catalogue[checked.tool_name]
    entry = PaletteEntry(tool_name=spec.name, detail="full", reason="ranked", risk=spec.risk)
    packet = caller.new_packet(entry)
    if spec.derived_parameters and spec.resolve_arguments:
        with session_results(packet.header.session_id):
            checked = replace(checked, params=spec.resolve_arguments(checked.params))
    evidence = source_texts(packet.with_update({"tool_routing": ToolRouting(past_calls=caller.sources)}))
    evidence = replace(evidence, client_words=not caller.has_own_words)
    call = with_risk(
        ToolCall(
            **({"call_id": requested.call_id} if requested.call_id else {}),
            tool_name=spec.name,
            params=checked.params,
            provenance=origins_of(checked.params, spec, evidence),
            selection_reasoning=CHOSEN_BY_CLIENT,
        ),
        spec,
    )
    if requested.refusal_if_changing and call.risk is not Risk.READ:
        reasons = f": {'; '.join(call.risk_reasons)}" if call.risk_reasons else ""
        read_hint = f" {confirm_read_hint(call)}" if call.is_unconfirmed_read else ""
        message = f"{call.tool_name} may {call.risk}{reasons}. {requested.refusal_if_changing}{read_hint}"
        raise CallRefusedError(message, code=Code.NOT_READ_ONLY)
    if own_session and (call.risk is not Risk.READ or call.is_flagged or spec.rules):
        packet = caller.new_packet(entry, own_session=True)
    routing = ToolRouting(max_reinjections=1).with_corrections(*checked.repairs).with_calls((call,), 1)
    proposal: PacketUpdate = {"header": packet.header, "content": packet.content, "tool_routing": routing}
    return packet.with_update(proposal), proposal


def _unknown_tool_message(name: str, catalogue: Catalogue) -> str:
    nearest = ", ".join(catalogue[tool].listed_name for tool in catalogue.similar_names(name))
    fallback = "no tool has a similar name" if catalogue else "no tools are available"
    hint = f"similar names: {nearest}" if nearest else fallback
    return f"unknown tool {name!r}: {hint}"
