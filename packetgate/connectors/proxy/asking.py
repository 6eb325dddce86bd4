"""Ask a client's user about a call: by elicitation, or by a result that requires input."""

import json
import time
from typing import Any, Literal

import mcp_types
from fastmcp import Context
from fastmcp.tools.base import InputRequiredToolResult
from mcp import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from packetgate.state.packet import CognitionPacket
from packetgate.state.printing import fenced, printable
from packetgate.tools.approval.questions import interrupt_payload

QuestionChannel = Literal["elicitation", "input_required", "nobody"]

ANSWER_FIELD = "answer"
FASTEST_PERSON_S = 0.5
"""Shortest time in seconds in which a person can read and decline a question."""


def is_modern(ctx: Context) -> bool:
    """Whether the request's protocol has no sessions."""
    request = ctx.request_context
    return request is not None and request.protocol_version in MODERN_PROTOCOL_VERSIONS


def question_channel(ctx: Context) -> QuestionChannel:
    """Return how the user can be asked during this request."""
    capabilities = ctx.session.client_capabilities
    form = capabilities.elicitation if capabilities else None
    if form is None or (form.url is not None and form.form is None):
        return "nobody"
    return "input_required" if is_modern(ctx) else "elicitation"


async def elicit(ctx: Context, packet: CognitionPacket) -> Any:
    """Ask the client's user now and return the reply."""
    asked_at = time.monotonic()
    try:
        result: Any = await ctx.session.elicit(
            message=_question_text(packet), requested_schema=_schema(packet), related_request_id=ctx.request_id
        )
    except MCPError as error:
        return _skip(f"the client could not ask: {printable(error.error.message)[:200]}")
    return reply_in(result, packet, time.monotonic() - asked_at)


def input_required(packet: CognitionPacket, state: str) -> InputRequiredToolResult:
    """Return the result that requires an answer; FastMCP encrypts the state and binds it to this request."""
    params = mcp_types.ElicitRequestFormParams(message=_question_text(packet), requested_schema=_schema(packet))
    requests = {ANSWER_FIELD: mcp_types.ElicitRequest(params=params)}
    return InputRequiredToolResult(mcp_types.InputRequiredResult(input_requests=requests, request_state=state))


def reply_in(result: Any, packet: CognitionPacket, seconds: float) -> Any:
    """Return the reply in an elicitation's result. A reply that the question did not offer runs nothing.

    Some clients decline at once by policy, without asking a person. Such a reply is not a denial.
    """
    if not isinstance(result, mcp_types.ElicitResult) or result.action == "cancel":
        return _skip("the client cancelled the question")
    if result.action == "decline":
        return "no" if seconds >= FASTEST_PERSON_S else _skip("the client declined at once, without asking a person")
    answer = (result.content or {}).get(ANSWER_FIELD)
    return answer if answer in _choices(packet) else _skip("the client's answer was not one of the offered answers")


def waiting_text(packet: CognitionPacket) -> str:
    """Return the message for a call that waits because its client cannot ask: the reason, and how to allow the call."""
    call, session = packet.routing.calls[0], packet.header.session_id
    doubt = f"the same call was made before: {call.doubt}" if call.started_at else ""
    always = (
        " To allow all such calls, add to packetgate.toml\n"
        f'[[policy.rules]]\neffect = "allow"\ntool = "{call.tool_name}"\nchannels = ["proxy"]'
    )
    return (
        f"{call.tool_name} was NOT run: {doubt or call.review_reasoning}, and this client does not support "
        "elicitation, so nobody could be asked. On the proxy's machine, `packetgate answer --session "
        f"{session}` shows the question, and `packetgate answer --session {session} yes` allows it; then repeat the "
        f"call with the same arguments for its result.{'' if doubt else always}"
    )


def _question_text(packet: CognitionPacket) -> str:
    question = packet.governance.question
    requests = interrupt_payload(packet, question)["action_requests"] if question else []
    return "\n\n".join(
        f"Allow {request['name']}?\n\n"
        f"{fenced(json.dumps(request['args'], indent=1, ensure_ascii=False), 'json')}\n\n{request['description']}"
        for request in requests
    )


def _choices(packet: CognitionPacket) -> list[str]:
    question = packet.governance.question
    remembered = [word for call in question.calls for word in call.remember] if question else []
    return ["yes", "no", *dict.fromkeys(remembered)]


def _schema(packet: CognitionPacket) -> dict[str, Any]:
    answer = {"type": "string", "title": "Answer", "enum": _choices(packet)}
    return {"type": "object", "properties": {ANSWER_FIELD: answer}, "required": [ANSWER_FIELD]}


def _skip(reason: str) -> dict[str, str]:
    return {"type": "skip", "message": reason}
