"""Show turns on a terminal: their progress, questions, answers and traces; and read the replies."""

import asyncio
import json
import shlex
import sys
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from rich.status import Status
from rich.text import Text

from packetgate.connectors import rendering
from packetgate.connectors.running import InterruptedReadError
from packetgate.connectors.sessions import AnswerPiece, Sessions, ShownText, has_expired
from packetgate.connectors.terminal.reading import LineReader, is_at_terminal, reader
from packetgate.connectors.turn import (
    RESUMING,
    Asked,
    Finished,
    Recorded,
    Reply,
    Resuming,
    SideTurnFinished,
    TurnEvent,
    UserInput,
    Waiting,
    remember_words,
    run_turn,
    words_reply,
)
from packetgate.graph.settings import Settings
from packetgate.state.channels import TERMINAL
from packetgate.state.context import RoutingContext
from packetgate.state.errors import InputError, PacketError, RequestError
from packetgate.state.events import StageStarted
from packetgate.state.packet import CognitionPacket
from packetgate.state.printing import printable
from packetgate.tools.catalogue.toolbox import Toolbox
from packetgate.tools.text.result_store import ResultStore

WAITING = 3
"""Exit status of a turn that waits for an answer."""
MAX_SESSIONS = 50
"""Maximum number of sessions whose last question is remembered."""
_SHORT_ID = 8
"""Characters of a question's id that are shown."""
_WAITS = "Another turn of this session is running, and your turn waits for it. Ctrl-C stops waiting."
_WITHDRAWN = "\n\n[the text above is withdrawn; the answer is:]\n"
_RECORDED = "Recorded. The {} runs the call; `packetgate trace --session {}` shows the result."
LEAVE = frozenset({"/quit", "/exit", "exit", "quit"})
_SMALL_HINT = "[Y]es, or Enter; [n]o; or say something else: "
_HINT, _EDITS = "[y]es, [n]o, [s]kip, [e]dit, or say something else: ", frozenset({"e", "edit"})
_EDIT_HINT = "Enter keeps a value; several lines, lists and objects are written as JSON"


class LastQuestion:
    """The last shown question of each session, kept in files for the next command's process."""

    def __init__(self, settings: Settings) -> None:
        self._scope = settings.database_url or ""
        self._folder = settings.home / "shown"

    def question_id(self, session: str) -> str:
        """Return the id of the last shown question; empty if there is no shown question."""
        file = self._file(session)
        return file.read_text().partition("\n")[0] if file.is_file() else ""

    def sessions(self) -> list[str]:
        """Return the sessions whose question was shown here, the latest first."""
        names = {file: file.read_text().partition("\n")[2] for file in self._files()}
        return [session for file, session in names.items() if self._file(session) == file]

    def remember(self, session: str, question_id: str) -> None:
        """Remember the question that is shown now, and delete the oldest entries."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._file(session).write_text(f"{question_id}\n{session}")
        with suppress(OSError):  # another process may delete the same files
            for old in self._files()[MAX_SESSIONS:]:
                old.unlink()

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob("*"), key=lambda file: file.stat().st_mtime, reverse=True)

    def _file(self, session: str) -> Path:
        return self._folder / sha256(f"{self._scope}\n{session}".encode()).hexdigest()[:32]


async def only_open_session(sessions: Sessions, shown: LastQuestion, asked: Collection[str]) -> str:
    """Return the only session whose question is still open, of those shown here and those `asked` by other processes.

    Raises:
        InputError: no such question is open, or more than one.
    """
    waiting = []
    for name in dict.fromkeys([*shown.sessions(), *asked]):
        with suppress(PacketError):  # one unreadable session must not stop the others
            question = (await sessions.state(name)).question
            if question and not has_expired(question):
                waiting.append(name)
    if len(waiting) == 1:
        return waiting[0]
    reason = f"these wait: {', '.join(waiting)}" if waiting else "no question is open"
    raise InputError(f"{reason}; name the session: packetgate answer yes --session NAME")


def selecting_model(settings: Settings) -> str:
    """Return the short name of the model that selects calls."""
    name = settings.prime if settings.lite == "reflex" else settings.lite
    return Path(name.partition(":")[2].partition("?")[0]).name.removesuffix(".gguf") or name


def _write(text: str) -> None:
    sys.stdout.write(printable(text))
    sys.stdout.flush()


@dataclass
class Terminal:
    """Shows turns and reads replies. Without a terminal, a question stays open."""

    sessions: Sessions
    session: str
    context: RoutingContext
    last_question: LastQuestion
    results: ResultStore
    as_json: bool = False
    """Whether standard output gets only the packet."""
    interactive: bool = False
    shows_trace: bool = False
    model: str = ""
    """Name of the model that selects calls."""
    options: Sequence[str] = ()
    """Options that `packetgate answer` must repeat."""
    program: str = "packetgate"
    """Prefix of the commands that are shown."""
    turns: Callable[[Sessions, UserInput, str, RoutingContext], AsyncGenerator[TurnEvent]] = run_turn
    """Runs a turn, or records an answer for the process that runs it."""
    read: LineReader = field(default_factory=reader)
    pending: dict[str, Any] | None = None
    """The open question, which the next input answers."""
    prompt: str = ""
    """The prompt for the reply."""
    default_reply: str = ""
    """The reply that an empty line gives."""

    def __post_init__(self) -> None:
        self._out = rendering.console(quiet=self.as_json)

    @property
    def toolbox(self) -> Toolbox:
        """The tools of the next turn."""
        return self.sessions.toolbox(self.context, TERMINAL)

    async def run(self, turn: UserInput) -> int:
        """Run a turn and ask its questions; return the exit status. If the turn stops, print how to continue."""
        try:
            while True:
                event = await self._until_end(turn)
                if isinstance(event, Recorded):
                    rendering.say(_RECORDED.format(event.channel, self.session), stderr=self.as_json)
                if isinstance(event, Asked) and self.interactive:
                    self.ask(event.question)
                    turn = await self._reply()
                    continue
                if isinstance(event, Asked):
                    self._show_pending(event)
                if self.as_json:
                    rendering.write_json(event.packet)
                return WAITING if isinstance(event, Asked) else event.exit_status
        except (EOFError, InterruptedReadError) as end:
            self._hint("left unanswered (yes, no or skip): {}", "yes")
            if isinstance(end, EOFError):
                return WAITING
            raise
        except asyncio.CancelledError:
            self._hint("stopped: {} continues it")
            raise

    async def step(self, turn: UserInput) -> None:
        """Run a turn. If the turn stops at a question, show the question."""
        event = await self._until_end(turn)
        if isinstance(event, Asked) and not event.is_known:
            self.ask(event.question)

    def ask(self, question: dict[str, Any]) -> None:
        """Show a question, which the next input answers."""
        width = self._out.width if is_at_terminal() else rendering.PLAIN_WIDTH
        self._out.print(rendering.question(question, width), end="", soft_wrap=True)
        self.last_question.remember(self.session, str(question.get("question_id", "")))
        self.pending, self.default_reply = question, ""
        if question.get("kind") == "question":
            self.prompt = "> "
            return
        if rendering.small_request(question) is not None and is_at_terminal():
            self.prompt, self.default_reply = _SMALL_HINT, "yes"
            return
        requests = question["action_requests"]
        each = "" if len(requests) == 1 else f"All {len(requests)}, or each as in `1 yes 2 no`: "
        self.prompt = f"{each}{''.join(f'{word}, ' for word in remember_words(question))}{_HINT}"

    async def reply_to(self, text: str, read: LineReader) -> Reply | None:
        """Return the input as the reply to the open question; None if the input is empty.

        The graph decides whether the text is a reply, a correction or a new request. `edit` reads the arguments of the
        calls, one a line.

        Raises:
            EOFError: the input leaves the chat.
            RequestError: the input is an edit that cannot be read.
        """
        question, text = self.pending, text.strip() or self.default_reply
        if question is None or not text:
            return None
        if text.casefold() in LEAVE:
            raise EOFError
        if text.casefold() in _EDITS and question.get("kind") != "question":
            edits = [await _edited(one, read) for one in question["action_requests"]]
            if not any(edits):
                rendering.say("nothing was changed, and nothing was run")
                return None
            text = f"edit {json.dumps(edits)}"
        reply = Reply(words_reply(text, question), str(question.get("question_id", "")))
        self.pending = None
        return reply

    async def _reply(self) -> Reply:
        while True:
            text = await self.read(self.prompt)
            try:
                if reply := await self.reply_to(text, self.read):
                    return reply
            except RequestError as error:
                rendering.say(str(error), "red")

    async def _until_end(self, turn: UserInput) -> Asked | Finished | Recorded:
        streams = sys.stdout.isatty() and not self.as_json
        shown = ShownText(_WITHDRAWN)
        async with aclosing(self.turns(self.sessions, turn, self.session, self.context)) as events:
            with Status("", console=rendering.console(stderr=True)) as status:
                try:
                    async for event in events:
                        match event:
                            case Waiting() | Resuming():
                                why = _WAITS if isinstance(event, Waiting) else RESUMING
                                status.console.print(why, style="yellow")
                            case StageStarted(stage=stage):
                                shown.start_stage(stage)
                                starting = ", ".join(self.sessions.starting)
                                status.update(Text(f"{stage}{f', starting {starting}' if starting else ''} …"))
                            case AnswerPiece() if streams:
                                status.stop()
                                _write(shown.add(event))
                            case SideTurnFinished(packet) | Finished(packet):
                                status.stop()
                                if not self.as_json:
                                    _write(f"{shown.rest(packet.response.candidate.rstrip())}\n")
                                shown = ShownText(_WITHDRAWN)
                                self._out.print(rendering.attachments(packet, self.results), end="")
                                if isinstance(event, Finished):
                                    self._show_trace(packet)
                                    return event
                            case Asked() | Recorded():
                                return event
                finally:
                    _write("\n" if shown.text else "")
        raise RequestError("the turn ended without an answer")

    def _show_trace(self, packet: CognitionPacket) -> None:
        if self.shows_trace:
            self._out.print()
            self._out.print(rendering.trace_table(packet))
        else:
            self._out.print(rendering.summary(packet, self.model), end="", soft_wrap=True)

    def _show_pending(self, asked: Asked) -> None:
        question_id = str(asked.question.get("question_id", ""))
        self.last_question.remember(self.session, question_id)
        self._out.print(rendering.question(asked.question), end="", soft_wrap=True)
        shown = rendering.trace_table(asked.packet) if self.shows_trace else rendering.warnings(asked.packet)
        self._out.print(shown, end="", soft_wrap=True)
        if asked.question.get("kind") == "question":
            words, others = "YOUR-WORDS", ""
        else:
            replies = ", ".join(["yes", "no", "skip", *remember_words(asked.question)])
            words, others = "yes", f" ({replies})"
        command = self.answer_command(words, f"--question {question_id[:_SHORT_ID]}")
        routing = asked.packet.tool_routing
        may_have_run = routing is not None and any(call.started_at for call in routing.calls)
        known = "it is unknown whether it ran" if may_have_run else "not run"
        self._out.print(f"\nWaiting for approval; {known}. To decide{others}: {command}", soft_wrap=True)

    def _hint(self, text: str, *reply: str) -> None:
        if sys.stderr.isatty():
            rendering.say(text.format(self.answer_command(*reply)), stderr=True)

    def answer_command(self, *reply: str) -> str:
        """Return the command that answers, or continues, the turn of this session."""
        return " ".join([f"{self.program} answer", *reply, shlex.join(["--session", self.session, *self.options])])


async def _edited(request: dict[str, Any], read: LineReader) -> dict[str, Any]:
    """Return the arguments of a call that the user changes, read one a line."""
    changed = {}
    rendering.say(f"{request['name']}: {_EDIT_HINT}", "")
    for name, value in request["args"].items():
        shown = value if isinstance(value, str) and "\n" not in value else json.dumps(value, ensure_ascii=False)
        text = (await read(f"{printable(name)} [{printable(shown)}]: ")).strip()
        if text:
            changed[name] = _typed(text, value)
    return changed


def _typed(text: str, value: Any) -> Any:
    """Return the value that the user typed: text stays text, and other values are parsed as JSON if possible."""
    if isinstance(value, str) and not text.startswith('"'):
        return text
    with suppress(ValueError):
        return json.loads(text)
    return text
