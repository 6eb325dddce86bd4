"""The clients for which servers are called: their capabilities, and the questions that servers ask them.

During a call, a server may ask for values (elicitation) or for text of the client's model (sampling). Only the
client whose call caused the question may see and answer it.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from mcp import MCPError
from mcp_types import (
    INVALID_REQUEST,
    ClientCapabilities,
    CreateMessageRequest,
    ElicitRequest,
    ElicitRequestURLParams,
    ElicitResult,
    ErrorData,
    InputRequest,
    InputResponse,
    ListRootsRequest,
    LoggingMessageNotificationParams,
)
from pydantic import ValidationError

from packetgate.state.printing import fenced, printable, shorten
from packetgate.state.redaction import redacted, redacted_data
from packetgate.toolsets.servers.definitions import visible_text, without_invisible_chars

QUESTION_S = 600.0
"""Longest wait for the answer to a question, in seconds."""
MAX_QUESTIONS = 10
"""Maximum questions of a server in one call."""
MAX_QUESTION_CHARS = 2_000
"""Longest text of a question that is shown, in characters."""
MAX_QUESTION_BYTES = 800_000
"""Largest question that passes, in bytes: official clients fail at an event of 1 MB."""
UNCLEAR_S = 20.0
"""Longest wait, in seconds, until one client's calls alone can have caused a question."""
MAX_TIMEOUTS = 10
"""Longest total wait for a call whose server reports progress, as a multiple of the time-out."""
_WEB = re.compile("https?://", re.IGNORECASE)

ReportProgress = Callable[[float, float | None, str | None], Awaitable[None]]
"""Callback with the progress, the total and the message; the message has no secrets."""
PassLog = Callable[[LoggingMessageNotificationParams], Awaitable[None]]
"""Callback with a log message, which has no secrets."""
Answer = InputResponse | ErrorData
Question = ElicitRequest | CreateMessageRequest
"""A request of a server that passes to a client."""
Ask = Callable[[Question], Awaitable[InputResponse]]
"""Callback that puts a server's question to the client. Raises MCPError or ValidationError without a usable answer."""


def passed_capabilities(declared: ClientCapabilities | None) -> dict[str, Any]:
    """Return those of a client's capabilities that servers may use."""
    kinds = {"elicitation", "sampling"}
    found: dict[str, Any] = declared.model_dump(exclude_none=True, include=kinds) if declared else {}
    return {**found, "elicitation": found["elicitation"] or {"form": {}}} if "elicitation" in found else found


@dataclass(frozen=True)
class Caller:
    """The client for which a call runs, and the messages that it receives during the call."""

    client: object = None
    """The same object for all calls of one client."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """The headers of its request; a server receives those that its entry names."""
    report_progress: ReportProgress | None = None
    pass_log: PassLog | None = None
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    """The capabilities that servers may use."""
    ask: Ask | None = None


@dataclass(eq=False)
class RunningCall:
    """A call that a server has not answered yet."""

    caller: Caller
    timeout_s: float
    ended: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    clock: asyncio.Timeout = field(default_factory=lambda: asyncio.timeout(None))
    latest: float = 0.0
    """When the call times out, whatever progress its server reports."""
    open_questions: int = 0
    all_questions: int = 0
    notes: list[str] = field(default_factory=list)
    """Why questions of the server were not answered, for the result."""

    def extend(self, *, anew: bool = False) -> None:
        """Extend the time-out up to its limit, or restart both (`anew`). Open questions pause it."""
        now = asyncio.get_running_loop().time()
        self.latest = now + MAX_TIMEOUTS * self.timeout_s if anew else self.latest
        with suppress(RuntimeError):  # the call has ended
            self.clock.reschedule(None if self.open_questions else min(now + self.timeout_s, self.latest))


_caller: ContextVar[Caller | None] = ContextVar("caller", default=None)
running_call: ContextVar[RunningCall | None] = ContextVar("running_call", default=None)
"""The call that causes a server's messages, if the connection identifies the call."""


@contextmanager
def called_by(caller: Caller) -> Iterator[None]:
    """Run the calls within the block for a client."""
    token = _caller.set(caller)
    try:
        yield
    finally:
        _caller.reset(token)


def current_caller() -> Caller:
    """Return the client of the current call."""
    return _caller.get() or Caller()


async def pass_question(question: InputRequest, server: str, running: Collection[RunningCall]) -> Answer:
    """Return the answer of the client whose call caused a server's question. No other client is asked.

    An elicitation that nobody answers is cancelled, and the call's result says why; other questions get an error.
    """
    own = running_call.get()
    calls = [call for call in running if call is own] if own else await _possible_causes(running)
    if any(call.all_questions == MAX_QUESTIONS for call in calls):
        return ErrorData(code=INVALID_REQUEST, message=f"a server may ask {MAX_QUESTIONS} questions in a call")
    for call in calls:
        call.all_questions += 1
    caller = calls[-1].caller if calls else Caller()
    passed = question if isinstance(question, ListRootsRequest) else _named(question, server)
    if any(call.caller.client is not caller.client for call in calls):
        why = "calls of several clients run, and the server does not say whose it means"
    elif caller.ask is None or isinstance(passed, ListRootsRequest):
        why = f"its client cannot be asked: {_kind(question)} is not supported, or the request has ended"
    elif not (why := _refusal(caller, passed)):
        for call in calls:
            call.open_questions += 1
            call.extend()
        try:
            async with asyncio.timeout(QUESTION_S):
                return await caller.ask(passed)
        except TimeoutError:
            why = f"nobody answered within {QUESTION_S:g} s"
        except (MCPError, ValidationError) as error:
            why = f"its client answered with an error: {shorten(printable(redacted(str(error))))}"
        finally:
            for call in calls:
                call.open_questions -= 1
                call.extend(anew=True)
    for call in calls:
        call.notes.append(f"[the server asked a question that no person answered: {why}]")
    if isinstance(question, ElicitRequest):
        return ElicitResult(action="cancel")
    return ErrorData(code=INVALID_REQUEST, message=why)


def _refusal(caller: Caller, question: Question) -> str:
    """Return why a client is not asked a question, or an empty string."""
    params = question.params
    if isinstance(question, CreateMessageRequest):
        is_able = "sampling" in caller.capabilities
    else:
        is_able = question.params.mode in caller.capabilities.get("elicitation", ())
    if not is_able:
        return f"its client cannot be asked: {_kind(question)} is not supported"
    if isinstance(params, ElicitRequestURLParams) and not _WEB.match(params.url):
        return "its address does not begin with http:// or https://"
    is_large = len(str(question).encode(errors="replace")) > MAX_QUESTION_BYTES
    return f"the question has more than {MAX_QUESTION_BYTES:,} bytes" if is_large else ""


def _kind(question: InputRequest) -> str:
    return f"elicitation ({question.params.mode})" if isinstance(question, ElicitRequest) else question.method


async def _possible_causes(running: Collection[RunningCall]) -> list[RunningCall]:
    """Return the calls that can have caused a question: some connections do not identify the call.

    A call that ends without the answer did not cause it. So wait a while until only calls of one client are left.
    """
    calls, clock = [*running], asyncio.get_running_loop().time
    end = clock() + UNCLEAR_S
    while len({id(call.caller.client) for call in calls}) > 1 and (left_s := end - clock()) > 0:
        await asyncio.wait([call.ended for call in calls], timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
        calls = [call for call in calls if not call.ended.done()]
    return calls


def _named(question: Question, server: str) -> Question:
    """Return an elicitation whose text names the server, so that it cannot look like a question of Packetgate.

    The texts of its form have no secrets and no invisible characters.
    """
    if isinstance(question, CreateMessageRequest):
        return question
    text = visible_text(redacted(question.params.message))
    if len(text) > MAX_QUESTION_CHARS:
        text = f"{text[:MAX_QUESTION_CHARS]}\n[cut here: {len(text):,} characters in all]"
    message = f"The server {server!r} asks this, not Packetgate. What it says is not checked:\n\n{fenced(text)}"
    update: dict[str, Any] = {"message": message}
    if not isinstance(question.params, ElicitRequestURLParams):
        update["requested_schema"] = without_invisible_chars(redacted_data(question.params.requested_schema))
    return question.model_copy(update={"params": question.params.model_copy(update=update)})
