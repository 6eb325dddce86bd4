"""One turn in a terminal: progress while it runs, the question it may ask, the answer, the journey."""

import json
import sys
from dataclasses import dataclass, field
from typing import Any

from rich.status import Status

from connectors.asking import Reply, Turn
from connectors.sessions import Sessions
from connectors.terminal import rendering
from connectors.terminal.reading import Reader, reader
from connectors.turn import Asked, Finished, StageFinished, StageStarted, run_turn
from state.context import RoutingContext
from state.errors import RequestError

WAITING = 3
"""Exit status of a turn that waits for an answer."""

HINT = "[y]es, [n]o, [s]kip, [e]dit, or say something else: "


@dataclass
class Terminal:
    """Shows turns and takes replies; without somebody at the keyboard a question stays pending."""

    sessions: Sessions
    session: str
    context: RoutingContext
    as_json: bool = False
    interactive: bool = False
    show_journey: bool = True
    read: Reader = field(default_factory=reader)

    async def run(self, turn: Turn) -> int:
        """Run the turn and whatever questions it asks; return the exit status."""
        while True:
            event = await self._until_end(turn)
            if isinstance(event, Finished):
                self._show(event)
                return 0
            if not self.interactive:
                self._show_pending(event)
                return WAITING
            turn = await self._ask(event.question)

    async def ask_again(self, question: dict[str, Any]) -> int:
        """Put a question that was pending already, and go on from the reply."""
        return await self.run(await self._ask(question))

    async def _until_end(self, turn: Turn) -> Asked | Finished:
        with Status("…", console=rendering.console(stderr=True)) as status:
            async for event in run_turn(self.sessions, turn, self.session, self.context):
                match event:
                    case StageStarted(stage):
                        status.update(f"{stage} …")
                    case StageFinished(entry) if sys.stderr.isatty() and not self.as_json:
                        status.console.print(
                            f"  {entry.step}: ", rendering.decision(entry), style="dim", sep="", soft_wrap=True
                        )
                    case Asked() | Finished():
                        return event
        raise RequestError("the turn ended without an answer")

    async def _ask(self, question: dict[str, Any]) -> Reply:
        out = rendering.console()
        out.print(rendering.question(question))
        if question.get("kind") == "question":
            return Reply(await self.read("> "))
        said = (await self.read(HINT)).strip()
        if said.lower() in {"e", "edit"}:
            return Reply(await self._edit(question))
        return Reply(said)

    async def _edit(self, question: dict[str, Any]) -> object:
        """Ask for new arguments of each call, as JSON; an empty line keeps them."""
        decisions: list[dict[str, object]] = []
        for request in question["action_requests"]:
            while True:
                written = await self.read(
                    f"{request['name']} {json.dumps(request['args'], ensure_ascii=False)}\nnew arguments as JSON: "
                )
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
        out = rendering.console()
        out.print(rendering.answer(finished.packet))
        if self.show_journey:
            out.print()
            out.print(rendering.journey(finished.packet))

    def _show_pending(self, asked: Asked) -> None:
        if self.as_json:
            sys.stdout.write(asked.packet.model_dump_json(indent=2) + "\n")
            return
        out = rendering.console()
        out.print(rendering.question(asked.question))
        out.print()
        out.print(rendering.journey(asked.packet))
        answer = "YOUR-WORDS" if asked.question.get("kind") == "question" else "yes|no|skip"
        switches = (
            " --allow-writes" * self.context.allow_write_tools + " --allow-commands" * self.context.allow_execute_tools
        )
        out.print(
            f"\nThis waits for you, and has not run: packetgate answer {answer} --session {self.session}{switches}"
        )
