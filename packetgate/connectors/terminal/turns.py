"""Run one turn in a terminal: show its progress, question, answer and trace."""

import asyncio
import json
import shlex
import sys
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from rich.status import Status
from rich.text import Text

from packetgate.connectors import rendering
from packetgate.connectors.running import InterruptedReadError
from packetgate.connectors.sessions import AnswerPiece, Sessions
from packetgate.connectors.terminal.last_question import LastQuestion
from packetgate.connectors.terminal.reading import LineReader, at_a_terminal, reader
from packetgate.connectors.turn import (
    RESUMING,
    Answering,
    Aside,
    Asked,
    Finished,
    Reply,
    Resuming,
    UserInput,
    Waiting,
    run_turn,
)
from packetgate.graph.building import LAST_STAGE
from packetgate.state.context import RoutingContext
from packetgate.state.errors import RequestError
from packetgate.state.events import StageFinished, StageStarted
from packetgate.state.packet import CognitionPacket
from packetgate.state.printing import escaped, printable
from packetgate.state.sections import Reflection
from packetgate.tools.text.result_store import ResultStore

WAITING = 3
"""Exit status of a turn that waits for an answer."""
_SHORT_ID = 8
"""Characters of a question's id that are shown."""
_WAITS = "Another turn of this session is running; this one waits for it. Ctrl-C stops waiting."
_WITHDRAWN = "\n\n[the text above is withdrawn; the answer is:]\n"
_REMEMBER_WORDS = ("session", "always", "never")
_LEAVE = "/quit"
_HINT = "[y]es, [n]o, [s]kip, [e]dit, or say something else: "


class _StreamedAnswer:
    """Prints an answer while the model writes it, without control characters."""

    def __init__(self) -> None:
        self._shown = ""

    def add(self, text: str) -> None:
        self._shown += printable(text)
        sys.stdout.write(printable(text))
        sys.stdout.flush()

    def finish(self, answer: str) -> None:
        """Print the rest; if the final answer differs from the streamed text, print a note and the complete answer."""
        answer = printable(answer).rstrip()
        if not answer.startswith(self._shown.rstrip()):
            self.add(_WITHDRAWN)
            self._shown = ""
        self.add(answer[len(self._shown) :])

    def end(self) -> None:
        if self._shown and not self._shown.endswith("\n"):
            self.add("\n")


@dataclass
class _Progress:
    sessions: Sessions
    stage: str = ""

    def __rich__(self) -> Text:
        starting = self.sessions.starting
        return Text(f"starting {', '.join(starting)} …" if starting else f"{self.stage} …")


@dataclass
class Terminal:
    """Shows turns and reads replies; without a terminal a question stays open."""

    sessions: Sessions
    session: str
    context: RoutingContext
    last_question: LastQuestion
    results: ResultStore
    as_json: bool = False
    interactive: bool = False
    shows_trace: bool = True
    options: tuple[str, ...] = ()
    """Options that `packetgate answer` must repeat."""
    read: LineReader = field(default_factory=reader)
    pending: dict[str, Any] | None = None
    """The open question, which the next input answers."""
    prompt: str = ""
    """The prompt for the reply."""
    _asked: str = ""
    """Id of the question that was shown last."""

    async def run(self, turn: UserInput) -> int:
        """Run a turn and ask its questions; return the exit status. If the turn stops, print how to continue."""
        try:
            while True:
                event = await self._until_end(turn)
                if isinstance(event, Finished):
                    self._show(event)
                    return event.status
                if not self.interactive:
                    self._show_pending(event)
                    return WAITING
                await self.ask(event.question)
                turn = await self._reply()
        except EOFError:
            self._hint("left unanswered: {}", "yes|no|skip")
            return WAITING
        except InterruptedReadError:
            self._hint("left unanswered: {}", "yes|no|skip")
            raise
        except asyncio.CancelledError:
            self._hint("stopped: {} continues it")
            raise

    async def step(self, turn: UserInput) -> None:
        """Run a turn. If the turn stops at a question, show the question."""
        event = await self._until_end(turn)
        if isinstance(event, Finished):
            self._show(event)
        else:
            await self.ask(event.question)

    async def ask(self, question: dict[str, Any]) -> None:
        """Show a question, which the next input answers."""
        out = rendering.console()
        shown = rendering.question(question, out.width if at_a_terminal() else rendering.PLAIN_WIDTH)
        out.print(shown, end="", soft_wrap=True)
        self._remember(question)
        self.pending = question
        if question.get("kind") == "question":
            self.prompt = "> "
            return
        requests = question["action_requests"]
        each = "" if len(requests) == 1 else f"All {len(requests)}, or each as in `1 yes 2 no`: "
        self.prompt = f"{each}{''.join(f'{word}, ' for word in _remembered(requests))}{_HINT}"

    async def reply_to(self, text: str) -> Reply | None:
        """Return the input as the reply to the open question; None if the input is empty.

        The graph decides whether the text is a reply, a correction or a new request.
        """
        question = self.pending
        if question is None or not text.strip():
            return None
        edits = text.strip().casefold() in {"e", "edit"} and question.get("kind") != "question"
        reply = await self._edit(question) if edits else text
        self.pending = None
        return Reply(reply, str(question.get("question_id", "")))

    async def _until_end(self, turn: UserInput) -> Asked | Finished:
        streams = sys.stdout.isatty() and not self.as_json
        progress, answer = _Progress(self.sessions), _StreamedAnswer()
        async with aclosing(run_turn(self.sessions, turn, self.session, self.context)) as events:
            with Status(progress, console=rendering.console(stderr=True)) as status:
                try:
                    async for event in events:
                        match event:
                            case Waiting() | Resuming():
                                status.update("")
                                line = _WAITS if isinstance(event, Waiting) else RESUMING
                                rendering.console(stderr=True).print(line, style="yellow")
                            case StageStarted(stage=stage):
                                progress.stage = stage
                                status.update(progress)
                            case StageFinished(decisions=decisions):
                                self._show_decisions(decisions, status)
                            case AnswerPiece() if streams:
                                status.stop()
                                answer.add(event.text)
                            case Answering():
                                self._show_answering(event)
                            case Aside(packet) | Finished(packet):
                                if streams:
                                    status.stop()
                                    answer.finish(packet.response.candidate)
                                if isinstance(event, Finished):
                                    return event
                                self._show_answer(packet, streamed=streams)
                                answer = _StreamedAnswer()
                            case Asked():
                                return event
                finally:
                    answer.end()
        raise RequestError("the turn ended without an answer")

    def _show_decisions(self, decisions: tuple[Reflection, ...], status: Status) -> None:
        for entry in decisions:
            if sys.stderr.isatty() and not self.as_json and entry.step != LAST_STAGE:
                line = Text(f"  {entry.step}: ", style="dim").append_text(rendering.decision(entry))
                status.console.print(line, no_wrap=True, overflow="ellipsis")

    async def _reply(self) -> Reply:
        while True:
            text = await self.read(self.prompt)
            if text.strip().casefold() == _LEAVE:
                raise EOFError
            reply = await self.reply_to(text)
            if reply is not None:
                return reply

    def _remember(self, question: dict[str, Any]) -> None:
        self._asked = str(question.get("question_id", ""))
        self.last_question.remember(self.session, self._asked)

    async def _edit(self, question: dict[str, Any]) -> object:
        decisions: list[dict[str, object]] = []
        for request in question["action_requests"]:
            current = escaped(f"{request['name']} {json.dumps(request['args'], ensure_ascii=False)}")
            while True:
                text = await self.read(f"{current}\nnew arguments as JSON: ")
                try:
                    args = json.loads(text) if text.strip() else request["args"]
                    break
                except json.JSONDecodeError as error:
                    rendering.console().print(f"not JSON: {error.msg} at column {error.colno}")
            decisions.append({"type": "edit", "edited_action": {"name": request["name"], "args": args}})
        return {"decisions": decisions}

    def _show(self, finished: Finished) -> None:
        if self.as_json:
            sys.stdout.write(finished.packet.model_dump_json(indent=2) + "\n")
            return
        self._show_answer(finished.packet, streamed=sys.stdout.isatty())
        out = rendering.console()
        if self.shows_trace:
            out.print()
            out.print(rendering.trace_table(finished.packet))
        elif any(entry.is_fallback for entry in finished.packet.reasoning.reflection_log):
            out.print("(model unavailable; the rule-based fallback answered. /why shows where)", style="yellow")

    def _show_answer(self, packet: CognitionPacket, *, streamed: bool) -> None:
        if self.as_json:
            return
        out = rendering.console()
        if not streamed:
            out.print(rendering.safe_text(packet.response.candidate))
        out.print(rendering.attachments(packet, self.results), end="")

    def _show_answering(self, answering: Answering) -> None:
        question_id = str(answering.question.get("question_id", ""))
        if self.as_json or question_id == self._asked:
            return
        tools = ", ".join(str(request.get("name")) for request in answering.question.get("action_requests", ()))
        reply = answering.value if isinstance(answering.value, str) else "as decided"
        line = escaped(f"To question {question_id[:_SHORT_ID]} ({tools}): {reply}")
        rendering.console().print(Text(line, style="dim"), soft_wrap=True)

    def _show_pending(self, asked: Asked) -> None:
        self._remember(asked.question)
        if self.as_json:
            sys.stdout.write(asked.packet.model_dump_json(indent=2) + "\n")
            return
        out = rendering.console()
        out.print(rendering.question(asked.question), soft_wrap=True)
        out.print(rendering.trace_table(asked.packet))
        if asked.question.get("kind") == "question":
            words = "YOUR-WORDS"
        else:
            words = "|".join(["yes", "no", "skip", *_remembered(asked.question["action_requests"])])
        command = self._answer_command(words, f"--question {self._asked[:_SHORT_ID]}")
        out.print(f"\nWaiting for approval; not run. To decide: {command}", soft_wrap=True)

    def _hint(self, text: str, *reply: str) -> None:
        if sys.stderr.isatty():
            rendering.say(text.format(self._answer_command(*reply)), stderr=True)

    def _answer_command(self, *reply: str) -> str:
        return " ".join(["packetgate answer", *reply, shlex.join(["--session", self.session, *self.options])])


def _remembered(requests: list[dict[str, Any]]) -> list[str]:
    return [
        word
        for word in _REMEMBER_WORDS
        if requests and all(word in request.get("remember", ()) for request in requests)
    ]
