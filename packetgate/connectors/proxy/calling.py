"""Run a client's call. Ask for approval by elicitation, with an `input_required` result, or outside the client.

A call whose client cannot ask is parked, and refused with the command that answers its question: `packetgate
answer` records the decision, and this process runs the call. A request that repeats the call waits a while for the
decision if the client gave a progress token. The first request does not, because many clients show no progress.
"""

import asyncio
import json
import time
from collections.abc import Collection
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import mcp_types
from fastmcp import Context
from fastmcp.exceptions import ToolError
from fastmcp.tools.base import InputRequiredToolResult, ToolResult
from mcp import MCPError

from packetgate.connectors.proxy.client_link import ClientLink, is_sessionless, run_linked
from packetgate.connectors.proxy.gateway import Gateway, refusal
from packetgate.connectors.proxy.results import MAX_EVENT_BYTES, call_result
from packetgate.connectors.proxy.sessions import ProxySession
from packetgate.connectors.shell_commands import command_anywhere, preferences_hint
from packetgate.gate.facts import SHORT_CHARS, RequestedCall
from packetgate.gate.proposal import Proposal
from packetgate.gate.questions import approval_payload
from packetgate.graph.settings import Settings
from packetgate.ranking.learning import agent_use
from packetgate.state.errors import CallRefusedError, InputError, PacketgateError
from packetgate.state.printing import fenced
from packetgate.tools.risk.tool import confirm_read_hint
from packetgate.tools.spec.tool_spec import digest_of
from packetgate.toolsets.servers.callers import called_by

if TYPE_CHECKING:
    from packetgate.connectors.recorded_answers import RecordedAnswers

ANSWER_FIELD = "answer"
READING_S = 1.0
"""Shortest time in seconds in which a person reads a question: a client that refuses faster has asked nobody."""
HEARTBEAT_S = 5.0
"""Seconds between two progress reports of a call that waits for an answer."""
LISTED_WEIGHT, SEARCHED_WEIGHT, NAMED_WEIGHT = 1.0, 1.5, 0.5
"""Weight of a use for learning. It depends on how the client found the tool."""


async def call_shown_tool(gateway: Gateway, ctx: Context, name: str, params: dict[str, Any]) -> ToolResult:
    """Call a tool that the client was shown. Raise ToolError if the call is refused."""
    session = gateway.session_of(ctx)
    catalogue = await gateway.catalogue(session, name)
    spec, listed_digest = catalogue.get(name), session.listed_tools.get(name)
    if spec is not None and listed_digest not in (None, spec.digest):
        session.listed_tools[name] = spec.digest
        raise refusal(
            f"{name} was NOT run: its server has changed it since you listed it. Its arguments are now: "
            f"{spec.signature()}. Repeat the call if it still does what you want: {spec.brief}"
        )
    listed_names = {entry.tool_name for entry in await gateway.tool_list(session, catalogue)}
    if name not in listed_names | session.shown_tools:
        raise refusal(
            f"{name} is not on your list: call it with call_read_tool or call_changing_tool, or set a context "
            "that lists it"
        )
    schema = catalogue[name].output_schema if name in catalogue else None
    call = partial(_run_call, gateway, ctx, RequestedCall(name, params), session)
    return await run_linked(gateway.asking_calls, ctx, partial(call, output_schema=schema, listed_names=listed_names))


async def call_any_tool(
    gateway: Gateway, ctx: Context, name: str, params: dict[str, Any], context_id: str | None, *, only_reads: bool
) -> ToolResult:
    """Call any tool that the client may use, through a meta-tool. Raise ToolError if the call is refused."""
    session = gateway.session_of(ctx, context_id)
    name = (await gateway.catalogue(session, name)).exact_name(name) or name
    instead = "Call it with call_changing_tool." if only_reads else ""
    requested = RequestedCall(name, params, refusal_if_changing=instead)
    return await run_linked(gateway.asking_calls, ctx, partial(_run_call, gateway, ctx, requested, session))


async def _run_call(
    gateway: Gateway,
    ctx: Context,
    requested: RequestedCall,
    session: ProxySession,
    link: ClientLink,
    *,
    output_schema: dict[str, Any] | None = None,
    listed_names: Collection[str] | None = None,
) -> ToolResult:
    """Return a call's result. `listed_names` holds the client's tool list if the tool was called by its own name."""
    await gateway.load_labels(session)
    try:
        outcome = await _decide_call(gateway, ctx, requested, session)
        if isinstance(outcome, ToolResult):
            return outcome
        proposal: Proposal = outcome
        if not proposal.calls[0].status.is_final:
            with called_by(link.caller):
                proposal = await gateway.run(proposal)
    except (CallRefusedError, InputError) as error:
        raise refusal(str(error)) from error
    except PacketgateError as error:
        raise ToolError(str(error)) from error
    session.remember_call(proposal)
    call = proposal.calls[0]
    await gateway.add_labels(session, call.labels)
    is_listed = call.tool_name in {*(listed_names or ()), *(entry.tool_name for entry in session.palette)}
    weight = LISTED_WEIGHT if is_listed else SEARCHED_WEIGHT if call.tool_name in session.found_tools else NAMED_WEIGHT
    use = agent_use(call, session.query, session.palette, weight, proposal.facts.header)
    packet = None if proposal.is_plain_read else session.packet(proposal)
    gateway.recorder.queue_record(proposal.facts.header, packet, use, proposal.entries)
    limit = MAX_EVENT_BYTES if ctx.transport == "streamable-http" else None
    result = partial(
        call_result,
        proposal,
        gateway.results.file,
        limit,
        output_schema,
        by_meta_tool=listed_names is None,
        settings=gateway.settings,
    )
    is_short = not (call.result and call.result.attachments) and len(call.result_text) < SHORT_CHARS
    return result() if is_short else await asyncio.to_thread(result)


async def _decide_call(
    gateway: Gateway, ctx: Context, requested: RequestedCall, session: ProxySession
) -> Proposal | ToolResult:
    """Return a decided call, or the result that asks the client's user."""
    key = _parked_key(ctx, requested, session)
    result: Any
    asked = gateway.open_questions.pop(ctx.request_state, None) if ctx.request_state else None
    if asked is not None:
        (proposal, asked_at), result = asked, (ctx.input_responses or {}).get(ANSWER_FIELD)
        return await _after_elicitation(gateway, ctx, requested, session, proposal, result, asked_at)
    if not _can_ask(ctx) or key in gateway.parked_calls:
        return await _decide_outside_client(gateway, ctx, requested, session, key)
    proposal = await gateway.propose(requested, session)
    question = proposal.question
    if question is None:
        return proposal
    asked_at = time.monotonic()
    if not is_sessionless(ctx):
        result = await _elicit(ctx, proposal)
        return await _after_elicitation(gateway, ctx, requested, session, proposal, result, asked_at)
    gateway.open_questions[question.question_id] = proposal, asked_at
    requests = {ANSWER_FIELD: mcp_types.ElicitRequest(params=_question_form(proposal))}
    # FastMCP encrypts the state and binds it to this request.
    return InputRequiredToolResult(
        mcp_types.InputRequiredResult(input_requests=requests, request_state=question.question_id)
    )


async def _after_elicitation(
    gateway: Gateway,
    ctx: Context,
    requested: RequestedCall,
    session: ProxySession,
    proposal: Proposal,
    result: Any,
    asked_at: float,
) -> Proposal:
    """Return the call with the decision of an elicitation's result. If the client did not ask, park the call."""
    is_refused = isinstance(result, MCPError) or (
        isinstance(result, mcp_types.ElicitResult) and result.action != "accept"
    )
    if is_refused and time.monotonic() - asked_at < READING_S:
        await gateway.answer(proposal, _skip_reply("the client refused the question before a person could read it"))
        return await _decide_outside_client(gateway, ctx, requested, session, _parked_key(ctx, requested, session))
    return await gateway.answer(proposal, _reply_from(result, proposal))


def _parked_key(ctx: Context, requested: RequestedCall, session: ProxySession) -> str:
    is_stateless = is_sessionless(ctx) and ctx.transport != "stdio" and not session.query
    scope = session.client if is_stateless else session.session_id
    return digest_of([scope, requested.name, dict(requested.params)])


async def _decide_outside_client(
    gateway: Gateway, ctx: Context, requested: RequestedCall, session: ProxySession, key: str
) -> Proposal:
    """Return the call of a client that cannot ask; if the call needs approval, park it.

    The parked call runs when it is approved. A request that repeats it waits a while for the answer, and gets the
    result.

    Raises:
        CallRefusedError: the call waits for an answer.
    """
    recorder = gateway.recorder
    parked = proposal = gateway.parked_calls.get(key)
    if parked is not None:
        stored_calls = await recorder.stored_calls()
        await _wait_for_answer(ctx, parked, stored_calls.answers, gateway.settings)
        proposal = await stored_calls.current(parked)
    is_open = proposal is not None and not proposal.calls[0].status.is_final
    if proposal is None or (is_open and proposal.question is not None and proposal.question.has_expired):
        proposal = await gateway.propose(requested, session, own_session=True, can_ask=_can_ask(ctx))
        if proposal.question is None:
            return proposal
        async with gateway.parking:
            other = gateway.parked_calls.get(key)
            if other is not None and other is not parked:
                proposal = other  # the same call, made concurrently
            else:
                # the request ends before the run
                caller = ClientLink(ctx, gateway.asking_calls).caller
                with called_by(replace(caller, report_progress=None, pass_log=None, ask=None, capabilities={})):
                    await recorder.park(session.packet(proposal))
                gateway.parked_calls[key] = proposal
    if not proposal.calls[0].status.is_final:
        raise CallRefusedError(_waiting_text(proposal, gateway.settings, can_ask=_can_ask(ctx)))
    gateway.parked_calls.pop(key, None)
    return proposal


async def _wait_for_answer(ctx: Context, proposal: Proposal, answers: "RecordedAnswers", settings: Settings) -> None:
    """Wait for the answer to a repeated call, and until a received answer has run.

    Only a client that takes progress reports, which keep its request alive, waits for a person.
    """
    session, started = proposal.facts.header.session_id, time.monotonic()
    patience = settings.answer_wait_s if _takes_progress(ctx) else 0.0
    step = 0.0
    while not await answers.wait(session, step):
        waited = time.monotonic() - started
        if waited >= patience and not answers.is_running(session):
            return
        await ctx.report_progress(
            waited, None, f"{proposal.calls[0].tool_name} waits for: {_answer_command(proposal, settings)}"
        )
        step = HEARTBEAT_S if answers.is_running(session) else min(HEARTBEAT_S, patience - waited)


def _takes_progress(ctx: Context) -> bool:
    meta = ctx.request_context.meta if ctx.request_context else None
    return bool(meta and meta.get("progressToken") is not None)


def _can_ask(ctx: Context) -> bool:
    capabilities = ctx.session.client_capabilities
    form = capabilities.elicitation if capabilities else None
    return form is not None and (form.url is None or form.form is not None)


async def _elicit(ctx: Context, proposal: Proposal) -> Any:
    """Ask the client's user now and return the result, or the error of a client that could not ask."""
    form = _question_form(proposal)
    try:
        return await ctx.session.elicit(
            message=form.message, requested_schema=form.requested_schema, related_request_id=ctx.request_id
        )
    except MCPError as error:
        return error


def _question_form(proposal: Proposal) -> mcp_types.ElicitRequestFormParams:
    question = proposal.question
    requests = approval_payload(proposal.waiting, question)["action_requests"] if question else []
    message = "\n\n".join(
        f"Allow {request['name']}?\n\n"
        f"{fenced(json.dumps(request['args'], indent=1, ensure_ascii=False), 'json')}\n\n{request['description']}"
        for request in requests
    )
    answer = {"type": "string", "title": "Answer", "enum": _offered_answers(proposal)}
    schema = {"type": "object", "properties": {ANSWER_FIELD: answer}, "required": [ANSWER_FIELD]}
    return mcp_types.ElicitRequestFormParams(message=message, requested_schema=schema)


def _offered_answers(proposal: Proposal) -> list[str]:
    question = proposal.question
    remembered = [word for call in question.calls for word in call.remember] if question else []
    return ["yes", "no", *dict.fromkeys(remembered)]


def _reply_from(result: Any, proposal: Proposal) -> Any:
    """Return the reply in an elicitation's result. If the question did not offer the answer, the call is skipped."""
    if not isinstance(result, mcp_types.ElicitResult) or result.action == "cancel":
        return _skip_reply("the client cancelled the question")
    if result.action == "decline":
        return "no"
    answer = (result.content or {}).get(ANSWER_FIELD)
    if answer not in _offered_answers(proposal):
        return _skip_reply("the client's answer was not among the offered answers")
    return answer


def _skip_reply(reason: str) -> dict[str, str]:
    return {"type": "skip", "message": reason}


def _answer_command(proposal: Proposal, settings: Settings) -> str:
    return f"{command_anywhere(settings)} answer --session {proposal.facts.header.session_id}"


def _waiting_text(proposal: Proposal, settings: Settings, *, can_ask: bool) -> str:
    """Return the message for a parked call: the reason, and how to answer its question."""
    call = proposal.calls[0]
    known = f"was NOT run: {call.review_reasoning}"
    if call.started_at:
        known = f"has status unknown. The same call was made before: {call.unfinished_run_text}. It needs approval"
    can_declare = call.is_unconfirmed_read and not call.started_at and not call.is_flagged
    declare = f" {confirm_read_hint(call)}\n{preferences_hint(settings)}" if can_declare else ""
    variable = " with the proxy's PACKETGATE_DATABASE_URL set," if settings.database_url else ""
    client = "refused the question before a person could read it" if can_ask else "does not support elicitation"
    return (
        f"{call.tool_name} {known}, and this client {client}, so nobody was asked. On the proxy's machine,{variable} "
        "this command shows a person the question and takes the answer:\n"
        f"{_answer_command(proposal, settings)}\n"
        f"This proxy then runs the call. Repeat the call with the same arguments for its result.{declare}"
    )
