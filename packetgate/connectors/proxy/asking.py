"""Ask a client's user: by elicitation, or by a result that requires input; or say that nobody can be asked."""

import json
import time
from typing import Any, Literal

import mcp_types
from fastmcp import Context
from fastmcp.tools.base import InputRequiredToolResult
from mcp import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from packetgate.connectors.proxy.sessions import Newest
from packetgate.state.packet import CognitionPacket
from packetgate.state.printing import fenced, printable
from packetgate.tools.approval.questions import payload

Way = Literal["elicitation", "input_required", "nobody"]

ANSWER = "answer"
PERSON_S = 0.5
"""Shortest time in seconds in which a person can read a question and decline it."""
MOST_PENDING = 1_000


def is_modern(ctx: Context) -> bool:
    """Whether the request is of a protocol without sessions."""
    request = ctx.request_context
    return request is not None and request.protocol_version in MODERN_PROTOCOL_VERSIONS


def way_to_ask(ctx: Context) -> Way:
    """Return how the user can be asked during this request."""
    offered = ctx.session.client_capabilities
    form = offered.elicitation if offered else None
    if form is None or (form.url is not None and form.form is None):
        return "nobody"
    return "input_required" if is_modern(ctx) else "elicitation"


def _question_text(packet: CognitionPacket) -> str:
    question = packet.governance.question
    asked = payload(packet, question)["action_requests"] if question else []
    return "\n\n".join(
        f"Allow {one['name']}?\n\n{fenced(json.dumps(one['args'], indent=1, ensure_ascii=False), 'json')}\n\n"
        f"{one['description']}"
        for one in asked
    )


def choices(packet: CognitionPacket) -> list[str]:
    """Return the possible answers."""
    question = packet.governance.question
    remembered = [word for one in question.calls for word in one.remember] if question else []
    return ["yes", "no", *dict.fromkeys(remembered)]


async def elicited(ctx: Context, packet: CognitionPacket) -> Any:
    """Ask the client's user now and return the reply."""
    asked = time.monotonic()
    try:
        result: Any = await ctx.session.elicit(
            message=_question_text(packet), requested_schema=_schema(packet), related_request_id=ctx.request_id
        )
    except MCPError as error:
        return _unasked(f"the client could not ask: {printable(error.error.message)[:200]}")
    return reply_in(result, packet, time.monotonic() - asked)


def asking_result(packet: CognitionPacket, state: str) -> InputRequiredToolResult:
    """Return the result that requires an answer; FastMCP seals the state and binds it to this request."""
    asked = mcp_types.ElicitRequest(
        params=mcp_types.ElicitRequestFormParams(message=_question_text(packet), requested_schema=_schema(packet))
    )
    return InputRequiredToolResult(mcp_types.InputRequiredResult(input_requests={ANSWER: asked}, request_state=state))


def reply_in(result: Any, packet: CognitionPacket, waited_s: float) -> Any:
    """Return the reply in an elicitation's result; anything but a plain answer lets nothing run.

    A client that declines at once, as some do by policy, asked nobody: that is no denial.
    """
    if not isinstance(result, mcp_types.ElicitResult) or result.action == "cancel":
        return _unasked("the client broke off the question")
    if result.action == "decline":
        return "no" if waited_s >= PERSON_S else _unasked("the client declined at once, without asking a person")
    said = (result.content or {}).get(ANSWER)
    if isinstance(said, str) and said in choices(packet):
        return said
    return _unasked("the client's answer was none of those that the question offers")


def _unasked(why: str) -> dict[str, str]:
    return {"type": "skip", "message": why}


def _schema(packet: CognitionPacket) -> dict[str, Any]:
    answer = {"type": "string", "title": "Answer", "enum": choices(packet)}
    return {"type": "object", "properties": {ANSWER: answer}, "required": [ANSWER]}


def waits(packet: CognitionPacket) -> str:
    """Return the message for a call that waits because its client cannot ask: why, and how to allow it."""
    call, session = packet.routing.calls[0], packet.header.session_id
    doubt = f"the same call was made before: {call.doubt}" if call.started_at else ""
    always = (
        " To allow all such calls, add to packetgate.toml\n"
        f'[[policy.rules]]\neffect = "allow"\ntool = "{call.tool_name}"\nchannels = ["proxy"]'
    )
    return (
        f"{call.tool_name} was NOT run: {doubt or call.review_reasoning}, and this client offers no elicitation, so "
        "that nobody could be asked. Whoever runs the proxy sees the question with `packetgate answer --session "
        f"{session}`, and allows it with `packetgate answer --session {session} yes`; then call it again, with the "
        f"same arguments, for its result.{'' if doubt else always}"
    )


class PendingCalls:
    """Calls that wait for an answer, each returned once; the oldest are dropped if there are too many."""

    def __init__(self) -> None:
        self._asked: Newest[str, tuple[CognitionPacket, float]] = Newest(MOST_PENDING)
        self._parked: Newest[str, CognitionPacket] = Newest(MOST_PENDING)

    def put(self, packet: CognitionPacket) -> str:
        """Keep a packet whose client was asked, and return the state that identifies it."""
        question = packet.governance.question
        state = question.question_id if question else ""
        self._asked[state] = (packet, time.monotonic())
        return state

    def take(self, state: str | None) -> tuple[CognitionPacket, float] | None:
        """Return the packet of a state and its age in seconds.

        None if the state is unknown or was taken.
        """
        found = self._asked.pop(state, None) if state else None
        return None if found is None else (found[0], time.monotonic() - found[1])

    def park(self, key: str, packet: CognitionPacket) -> None:
        """Keep a packet that is answered outside its client."""
        self._parked[key] = packet

    def parked(self, key: str) -> CognitionPacket | None:
        """Return the packet that was parked for a call with this key."""
        return self._parked.pop(key, None)
