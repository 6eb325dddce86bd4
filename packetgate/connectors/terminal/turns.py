"""Run one turn in a terminal: show its progress, question, answer and trace."""

import asyncio
import json
import pydoc
import shlex
import sys
from contextlib import aclosing
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from rich.status import Status
from rich.text import Text

from packetgate.connectors import rendering
from packetgate.connectors.process import on_ctrl_c
from packetgate.connectors.running import InterruptedReadError
from packetgate.connectors.sessions import AnswerPiece, Sessions
from packetgate.connectors.terminal.answering import StreamedAnswer
from packetgate.connectors.terminal.last_question import LastQuestion
from packetgate.connectors.terminal.reading import Reader, at_a_terminal, reader
from packetgate.connectors.turn import (
    GONE_ON_FIRST,
    Answering,
    Aside,
    Asked,
    Finished,
    GoingOn,
    Reply,
    Turn,
    Waiting,
    run_turn,
)
from packetgate.graph.building import LAST
from packetgate.state.context import RoutingContext
from packetgate.state.errors import RequestError
from packetgate.state.events import StageFinished, StageStarted
from packetgate.state.packet import CognitionPacket
from packetgate.state.printing import escaped
from packetgate.state.sections import Reflection
from packetgate.tools.text.result_store import ResultStore

KEPT_FREE = 8
"""Rows of the screen that a text leaves free."""


async def page(text: Text) -> bool:
    """Show a text in the user's pager if it is longer than the screen; return whether it was."""
    out = rendering.console()
    rows = sum(max(1, ceil(len(line) / out.width)) for line in text.plain.splitlines())
    if not at_a_terminal() or rows <= max(out.height - KEPT_FREE, 1):
        return False
    with on_ctrl_c(lambda: None):  # there it is the pager's
        await asyncio.to_thread(pydoc.pager, text.plain)
    return True


WAITING = 3
"""Exit status of a turn that waits for approval."""

SHORT = 8
"""Digits of a question's id that are shown and identify it."""

WAITS = "Another turn of this session is running; this one waits for it. Ctrl-C stops waiting."
REMEMBERED = ("session", "always", "never")
LEAVING = ("/quit", "/exit")
HINT = "[y]es, [n]o, [s]kip, [e]dit, or say something else: "


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
    shown: LastQuestion
    kept: ResultStore
    as_json: bool = False
    interactive: bool = False
    show_journey: bool = True
    options: tuple[str, ...] = ()
    """Options that `packetgate answer` must repeat."""
    read: Reader = field(default_factory=reader)
    pending: dict[str, Any] | None = None
    """The open question, which the next input answers."""
    prompt: str = ""
    """The prompt for the reply."""
    _asked: str = ""
    """The question that was shown last."""

    async def run(self, turn: Turn) -> int:
        """Run the turn and its questions; return the exit status."""
        while True:
            event = await self._until_end(turn)
            if isinstance(event, Finished):
                self._show(event)
                return event.status
            if not self.interactive:
                self._show_pending(event)
                return WAITING
            await self.put(event.question)
            turn = await self._reply()

    async def step(self, turn: Turn) -> None:
        """Run the turn up to its answer or its question, which is then asked."""
        event = await self._until_end(turn)
        if isinstance(event, Finished):
            self._show(event)
        else:
            await self.put(event.question)

    async def run_once(self, turn: Turn) -> int:
        """Run the turn of a command; if it is stopped or a question stays open, print how to continue."""
        try:
            return await self.run(turn)
        except EOFError:
            self._tell_how("left unanswered: {}", "yes|no|skip")
            return WAITING
        except InterruptedReadError:
            self._tell_how("left unanswered: {}", "yes|no|skip")
            raise
        except asyncio.CancelledError:
            self._tell_how("stopped: {} continues it")
            raise

    async def _until_end(self, turn: Turn) -> Asked | Finished:
        streams = sys.stdout.isatty() and not self.as_json
        async with aclosing(run_turn(self.sessions, turn, self.session, self.context)) as events:
            progress = _Progress(self.sessions)
            with Status(progress, console=rendering.console(stderr=True)) as status, StreamedAnswer() as answer:
                async for event in events:
                    match event:
                        case Waiting() | GoingOn():
                            line = WAITS if isinstance(event, Waiting) else GONE_ON_FIRST
                            status.update("")
                            rendering.console(stderr=True).print(line, style="yellow")
                        case StageStarted(stage=stage):
                            progress.stage = stage
                            status.update(progress)
                        case StageFinished(decisions=decisions):
                            for entry in decisions:
                                self._tell(entry, status)
                        case AnswerPiece() if streams:
                            status.stop()
                            answer.add(event)
                        case Answering():
                            self._tell_answered(event)
                        case Aside(packet) | Finished(packet):
                            if streams:
                                status.stop()
                                answer.finish(packet.response.candidate)
                            if isinstance(event, Finished):
                                return event
                            self._show_answer(packet, streams=streams)
                        case Asked():
                            return event
        raise RequestError("the turn ended without an answer")

    def _tell(self, entry: Reflection, status: Status) -> None:
        if sys.stderr.isatty() and not self.as_json and entry.step != LAST:
            line = Text(f"  {entry.step}: ", style="dim").append_text(rendering.decision(entry))
            status.console.print(line, no_wrap=True, overflow="ellipsis")

    async def put(self, question: dict[str, Any]) -> None:
        """Show a question, which the next input answers."""
        out = rendering.console()
        shown = rendering.question(question, out.width if at_a_terminal() else rendering.PLAIN_WIDTH)
        await page(shown)
        out.print(shown, end="", soft_wrap=True)
        self._remember(question)
        self.pending = question
        if question.get("kind") == "question":
            self.prompt = "> "
            return
        count = len(question["action_requests"])
        more = "".join(f"{word}, " for word in _remembered(question["action_requests"]))
        each = "" if count == 1 else f"All {count}, or each as in `1 yes 2 no`: "
        self.prompt = f"{each}{more}{HINT}"

    async def reply_to(self, said: str) -> Reply | None:
        """Return input as the reply to the open question; None if it is empty.

        The graph decides whether it is a reply, a correction or a new request.
        """
        question = self.pending
        if question is None or not said.strip():
            return None
        word, asked = said.strip().casefold(), str(question.get("question_id", ""))
        is_plain = question.get("kind") == "question"
        reply = await self._edit(question) if word in {"e", "edit"} and not is_plain else said
        self.pending = None
        return Reply(reply, asked)

    async def _reply(self) -> Reply:
        while True:
            said = await self.read(self.prompt)
            if said.strip().casefold() in LEAVING:
                raise EOFError
            reply = await self.reply_to(said)
            if reply is not None:
                return reply

    def _remember(self, question: dict[str, Any]) -> str:
        question_id = str(question.get("question_id", ""))
        self.shown.remember(self.session, question_id)
        self._asked = question_id
        return question_id

    async def _edit(self, question: dict[str, Any]) -> object:
        decisions: list[dict[str, object]] = []
        for request in question["action_requests"]:
            while True:
                now = escaped(f"{request['name']} {json.dumps(request['args'], ensure_ascii=False)}")
                written = await self.read(f"{now}\nnew arguments as JSON: ")
                try:
                    args = json.loads(written) if written.strip() else request["args"]
                    break
                except json.JSONDecodeError as error:
                    rendering.console().print(f"not JSON: {error.msg} at column {error.colno}")
            decisions.append({"type": "edit", "edited_action": {"name": request["name"], "args": args}})
        return {"decisions": decisions}

    def _show(self, finished: Finished) -> None:
        if self.as_json:
            sys.stdout.write(finished.packet.model_dump_json(indent=2) + "\n")
            return
        self._show_answer(finished.packet, streams=sys.stdout.isatty())
        out = rendering.console()
        if self.show_journey:
            out.print()
            out.print(rendering.journey(finished.packet))
        elif any(entry.is_fallback for entry in finished.packet.reasoning.reflection_log):
            out.print("(model unavailable; the rule-based fallback answered. /why shows where)", style="yellow")

    def _show_answer(self, packet: CognitionPacket, *, streams: bool) -> None:
        out = rendering.console()
        if not self.as_json:
            out.print("" if streams else rendering.answer(packet), end="" if streams else "\n")
            out.print(rendering.attachments(packet, self.kept), end="")

    def _tell_answered(self, answering: Answering) -> None:
        question_id = str(answering.question.get("question_id", ""))
        if self.as_json or question_id == self._asked:
            return
        about = ", ".join(str(one.get("name")) for one in answering.question.get("action_requests", ()))
        said = answering.value if isinstance(answering.value, str) else "as decided"
        line = f"To question {question_id[:SHORT]} ({about}): {said}"
        rendering.console().print(Text(escaped(line), style="dim"), soft_wrap=True)

    def _show_pending(self, asked: Asked) -> None:
        question_id = self._remember(asked.question)
        if self.as_json:
            sys.stdout.write(asked.packet.model_dump_json(indent=2) + "\n")
            return
        out = rendering.console()
        out.print(rendering.question(asked.question), soft_wrap=True)
        out.print(rendering.journey(asked.packet))
        words = "|".join(["yes", "no", "skip", *_remembered(asked.question["action_requests"])])
        answer = "YOUR-WORDS" if asked.question.get("kind") == "question" else words
        how = self._answer(answer, f"--question {question_id[:SHORT]}")
        out.print(f"\nWaiting for approval; not run. To decide: {how}", soft_wrap=True)

    def _tell_how(self, what: str, *reply: str) -> None:
        if sys.stderr.isatty():
            rendering.console(stderr=True).print(what.format(self._answer(*reply)), style="dim", soft_wrap=True)

    def _answer(self, *reply: str) -> str:
        return " ".join(["packetgate answer", *reply, shlex.join(["--session", self.session, *self.options])])


def _remembered(requests: list[dict[str, Any]]) -> list[str]:
    return [word for word in REMEMBERED if requests and all(word in one.get("remember", ()) for one in requests)]
