"""`packetgate chat`: turn after turn on one session, and slash commands between them."""

import asyncio
import re
import sys
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

from packetgate.connectors import rendering
from packetgate.connectors.opening import open_sessions
from packetgate.connectors.options import (
    Commands,
    Lite,
    McpConfigPath,
    Prime,
    Session,
    Set,
    Url,
    Writes,
    check_settings,
    run_settings_from,
    session_name,
    settings_from,
)
from packetgate.connectors.process import on_ctrl_c
from packetgate.connectors.rendering import say
from packetgate.connectors.running import InterruptedReadError, error_line
from packetgate.connectors.terminal.last_question import LastQuestion
from packetgate.connectors.terminal.reading import file_part, is_at_terminal, reader
from packetgate.connectors.terminal.screen import WAITING, Terminal
from packetgate.connectors.terminal.turns import ContextType, turn_request, undo_message
from packetgate.connectors.turn import Continue, Say
from packetgate.graph.composition import model_pool
from packetgate.graph.settings import Settings
from packetgate.graph.shared_results import result_store
from packetgate.state.channels import SwitchHints
from packetgate.state.errors import PacketgateError, RequestError, SessionError
from packetgate.state.packet import CognitionPacket
from packetgate.state.request import TurnRequest
from packetgate.state.routing import ToolResult
from packetgate.tools.attached.parts import Part

_PROMPT = "you> "
_STOPPED = "stopped: /continue continues it, or send another message"
_LEFT_OPEN = "left unanswered: /continue asks again, or send another message"
_LEAVE_HINT = "/quit or Ctrl-D leaves"
_HINTS = SwitchHints.from_commands("/writes on", "/commands on", "`/rest` shows all of it")


async def chat(
    session: Session = None,
    context_type: ContextType = None,
    mcp_config: McpConfigPath = None,
    lite: Lite = None,
    prime: Prime = None,
    url: Url = None,
    allow_writes: Writes = None,
    allow_commands: Commands = None,
    overrides: Set = None,
) -> int:
    """Run turn after turn.

    Ctrl-C stops a turn, /quit or Ctrl-D leaves, /help lists the commands.
    """
    request = turn_request(context_type, _HINTS)
    settings = check_settings(settings_from(mcp_config=mcp_config, lite=lite, prime=prime, url=url))
    context = run_settings_from(settings, overrides, allow_writes, allow_commands).context
    async with open_sessions(settings) as sessions:
        terminal = Terminal(
            *(sessions, session_name(session), context, LastQuestion(settings), result_store(settings)),
            interactive=True,
            shows_trace=False,
        )
        sessions.start_servers()
        await _Chat(terminal, settings, request).run()
        left = await sessions.state(terminal.session)
        return WAITING if left.question is not None and not is_at_terminal() else 0


class _Chat:
    def __init__(self, terminal: Terminal, settings: Settings, request: TurnRequest) -> None:
        self._terminal, self._settings, self._request = terminal, settings, request
        self._sessions = terminal.sessions
        self._attached: list[Part] = []
        self._is_over = False

    async def run(self) -> None:
        terminal = self._terminal
        read = reader(self._settings.home / "history", {name: about for name, (_, about, _) in HANDLERS.items()})
        await _guarded(self._greet())
        while not self._is_over:
            try:
                text = (await read(terminal.prompt if terminal.pending else _PROMPT)).strip()
            except (InterruptedReadError, EOFError) as end:
                if terminal.pending is None and isinstance(end, EOFError):
                    break
                say(_LEFT_OPEN if terminal.pending else _LEAVE_HINT)
                terminal.pending = None
                continue
            name = text.partition(" ")[0].casefold()
            if name in HANDLERS or (terminal.pending is None and _COMMAND.match(text)):
                await _guarded(self._command(name, text[len(name) :].strip()))
            elif text:
                await _guarded(self._say(text))

    async def _greet(self) -> None:
        state = await self._sessions.state(self._terminal.session)
        say(f"session {self._terminal.session}; /help for help")
        if state.question is not None:
            self._terminal.ask(state.question)
        elif state.is_unfinished:
            say("its last turn was interrupted: /continue continues it")

    async def _say(self, text: str) -> None:
        terminal = self._terminal
        if terminal.pending is None or self._attached:
            question_id, files = terminal.last_question.question_id(terminal.session), tuple(self._attached)
            self._attached.clear()
            terminal.pending = None
            await terminal.step(Say(text, self._request, question_id, files=files))
        elif reply := await terminal.reply_to(text):
            await terminal.step(reply)

    async def _command(self, name: str, argument: str) -> None:
        if name not in HANDLERS:
            raise RequestError(f"{name}: unknown command: /help lists all")
        takes, _, run = HANDLERS[name]
        if takes == _ON_OFF:
            is_valid = argument.casefold() in {"on", "off"}
        else:
            is_valid = bool(takes) if argument else takes[:1] in {"", "["}
        if not is_valid:
            raise RequestError(f"{name} takes {takes or 'no argument'}, not {argument!r}")
        await run(self, argument)

    async def _packet(self) -> CognitionPacket:
        packet = (await self._sessions.state(self._terminal.session)).packet
        if not packet.content.original_prompt:
            raise SessionError(f"session {self._terminal.session!r} has no request yet")
        return packet

    async def help(self, _: str) -> None:
        rows = [(f"{name} {takes}", about) for name, (takes, about, _run) in HANDLERS.items()]
        rendering.console().print(rendering.table(("", ""), rows))
        say("Enter sends; Alt+Enter, or a \\ at the end, begins a new line. Ctrl-C stops a turn.")

    async def why(self, _: str) -> None:
        rendering.console().print(rendering.trace_table(await self._packet()))

    async def tools(self, _: str) -> None:
        packet = await self._packet()
        columns: rendering.Columns = {
            "tool": "tool_name",
            "risk": "risk",
            "shown": "detail",
            "reason": lambda row: f"{row['reason']}, score {row['score']:.2f}" if row["score"] else row["reason"],
        }
        rendering.print_rows([dict(entry) for entry in packet.context.palette], columns)
        count = f"{len(packet.context.palette):,} of {packet.context.available_count:,} tools"
        say(f"{count} for {packet.content.original_prompt[:80]!r}; `packetgate tools` lists all")

    async def model(self, name: str) -> None:
        if name:
            settings = self._settings.model_copy(update={"lite": name, "prime": "reflex"})
            with rendering.console(stderr=True).status("loading ..."):
                await self._sessions.use_models(model_pool(settings))
            self._settings = settings
        if self._settings.url:
            say(f"the turns run on {self._settings.url}, assistant {self._settings.assistant}")
            return
        pool = model_pool(self._settings)
        for roles in pool.role_groups:
            say(f"{' and '.join(roles)}: {pool.describe(roles[0])}")

    async def switch(self, choice: str, setting: str, tools: str) -> None:
        is_on = choice.casefold() == "on"
        self._terminal.context = self._terminal.context.model_copy(update={setting: is_on})
        say(f"{tools} {'run after your approval' if is_on else 'only describe what they would do'}")

    async def resume(self, _: str) -> None:
        state = await self._sessions.state(self._terminal.session)
        if state.question is not None:
            self._terminal.ask(state.question)
        elif state.is_unfinished:
            await self._terminal.step(Continue())
        else:
            say("nothing to continue: no question is open and no turn was interrupted")

    async def undo(self, change: str) -> None:
        message = undo_message(change)
        self._terminal.pending = None
        await self._terminal.step(Say(message, self._request.changed(is_new=True)))

    async def attach(self, file: str) -> None:
        self._attached.append(await asyncio.to_thread(file_part, Path(file)))
        say(f"{file} is attached to your next message")

    async def session(self, name: str) -> None:
        if not name:
            say(f"packetgate chat --session {self._terminal.session}")
            return
        self._terminal.session, self._terminal.pending = name, None
        await self._greet()

    async def rest(self, _: str) -> None:
        routing, terminal = (await self._packet()).tool_routing, self._terminal
        for call in routing.all_calls if routing else ():
            result = call.result or ToolResult(success=False)
            file = terminal.results.file(result.handle, terminal.session) if result.handle else None
            text = await asyncio.to_thread(file.read_text, errors="replace") if file else result.output
            say(f"{call.tool_name}:\n{text}", "")

    async def reset(self, _: str) -> None:
        reply = await self._terminal.read(f"Delete session {self._terminal.session}? [y/N] ")
        if reply.strip().casefold() not in {"y", "yes"}:
            say("nothing was deleted")
            return
        await self._sessions.forget(self._terminal.session)
        self._terminal.pending = None
        say(f"session {self._terminal.session} was deleted")

    async def quit(self, _: str) -> None:
        self._is_over = True


_ON_OFF = "on|off"
_WRITES = partial(_Chat.switch, setting="allow_write_tools", tools="tools that change things")
_COMMANDS = partial(_Chat.switch, setting="allow_execute_tools", tools="tools that execute commands")
HANDLERS: dict[str, tuple[str, str, Callable[[_Chat, str], Awaitable[None]]]] = {
    "/help": ("", "this list", _Chat.help),
    "/why": ("", "the last packet's trace", _Chat.why),
    "/tools": ("", "the last palette, and why each tool was on it", _Chat.tools),
    "/model": ("[NAME]", "show the models in use, or switch to another", _Chat.model),
    "/writes": (_ON_OFF, "allow tools that change things; each call still needs approval", _WRITES),
    "/commands": (_ON_OFF, "allow tools that execute commands; each call still needs approval", _COMMANDS),
    "/continue": ("", "ask the open question again, or continue an interrupted turn", _Chat.resume),
    "/undo": ("[ID]", "undo this session's last change of a file, or the named change, after approval", _Chat.undo),
    "/attach": ("FILE", "attach a picture or a text file to the next message", _Chat.attach),
    "/session": ("[NAME]", "show the session's name, or switch to another session", _Chat.session),
    "/rest": ("", "show everything that the last turn's tools returned", _Chat.rest),
    "/reset": ("", "delete this session, after confirmation", _Chat.reset),
    "/quit": ("", "leave the chat and keep the session", _Chat.quit),
}
"""Each slash command: its argument (in brackets if optional), its description, and what it runs."""
_COMMAND = re.compile(r"/[a-z?]*(\s|$)", re.IGNORECASE)
"""Matches commands, also unknown ones, but not `/etc/hosts`."""


async def _guarded(turn: Coroutine[Any, Any, object]) -> None:
    running, loop = asyncio.ensure_future(turn), asyncio.get_running_loop()
    with on_ctrl_c(lambda: loop.call_soon_threadsafe(running.cancel)):
        try:
            await running
        except PacketgateError as error:
            sys.stdout.flush()
            say(error_line(error), "red", stderr=True)
        except asyncio.CancelledError:
            say(_STOPPED)
        except (InterruptedReadError, EOFError):
            say(_LEFT_OPEN)
