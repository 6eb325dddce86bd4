"""`packetgate chat`: turn after turn on one session, and slash commands between them."""

import asyncio
import os
import sys
from collections.abc import Coroutine, Iterator
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
    Trace,
    Writes,
    check_settings,
    run_settings_from,
    session_name,
    settings_from,
)
from packetgate.connectors.process import on_ctrl_c
from packetgate.connectors.rendering import say
from packetgate.connectors.running import InterruptedReadError, error_line, unexpected_error_line
from packetgate.connectors.terminal.completion import completions
from packetgate.connectors.terminal.reading import LineReader, file_part, is_at_terminal, reader
from packetgate.connectors.terminal.screen import LEAVE, WAITING, LastQuestion, Terminal, selecting_model
from packetgate.connectors.terminal.turns import ContextType, offer_init, turn_request, undo_message
from packetgate.connectors.turn import Continue, Say
from packetgate.deciders.commands import NOT_TYPED, read_command
from packetgate.graph.shared_results import result_store
from packetgate.state.channels import TERMINAL, SwitchHints
from packetgate.state.errors import PacketgateError, RequestError, SessionError
from packetgate.state.request import TurnRequest
from packetgate.state.routing import ToolResult
from packetgate.tools.attached.parts import Part

_PROMPT = "you> "
_STOPPED = "stopped: /continue continues it, or send another message"
_LEFT_OPEN = "left unanswered: /continue asks again, or send another message"
_LEAVE_HINT = "/quit or Ctrl-D leaves"
_HINTS = SwitchHints.from_commands("/writes on", "/commands on", "`/rest` shows all of it")
COMMANDS = {
    "/help": "this list",
    "/why": "the last packet's trace",
    "/trace": "on|off: show the trace of each turn",
    "/rest": "everything that the last turn's tools returned",
    "/writes": "on|off: allow tools that change things; each call still needs approval",
    "/commands": "on|off: allow tools that execute commands; each call still needs approval",
    "/continue": "ask the open question again, or continue an interrupted turn",
    "/undo": "[ID]: undo this session's last change of a file, or the named change, after approval",
    "/attach": "FILE: attach an image or a text file to the next message",
    "/reset": "delete this session, after confirmation",
    "/quit": "leave the chat and keep the session",
}
"""Each slash command, with its argument and its effect."""
_SWITCHES = {
    "/writes": ("allow_write_tools", "tools that change things"),
    "/commands": ("allow_execute_tools", "tools that execute commands"),
}


async def chat(
    session: Session = None,
    context_type: ContextType = None,
    mcp_config: McpConfigPath = None,
    lite: Lite = None,
    prime: Prime = None,
    allow_writes: Writes = None,
    allow_commands: Commands = None,
    overrides: Set = None,
    show_trace: Trace = False,
) -> int:
    """Chat in this terminal.

    Ctrl-C stops a turn, /quit or Ctrl-D leaves, /help lists the commands.
    """
    request = turn_request(context_type, _HINTS).changed(takes_commands=sys.stdin.isatty())
    options: dict[str, Any] = {"mcp_config": mcp_config, "lite": lite, "prime": prime}
    await offer_init(settings_from(**options))
    settings = check_settings(settings_from(**options))
    context = run_settings_from(settings, overrides, allow_writes, allow_commands).context
    async with open_sessions(settings, channel=TERMINAL) as sessions:
        terminal = Terminal(
            *(sessions, session_name(session), context, LastQuestion(settings), result_store(settings)),
            interactive=True,
            shows_trace=show_trace,
            model=selecting_model(settings),
        )
        sessions.start(context, request.origin)

        def complete(text: str) -> Iterator[tuple[str, str, str]]:
            return completions(text, COMMANDS, terminal.toolbox.last_catalogue, settings.root)

        await _Chat(terminal, reader(settings.home / "history", complete), request).run()
        left = await sessions.state(terminal.session)
        return WAITING if left.question is not None and not is_at_terminal() else 0


class _Chat:
    def __init__(self, terminal: Terminal, read: LineReader, request: TurnRequest) -> None:
        self._terminal, self._read, self._request = terminal, read, request
        self._attached: list[Part] = []

    async def run(self) -> None:
        terminal = self._terminal
        say(f"session {terminal.session}; /help for help")
        await _guarded(self._resume(greets=True))
        while True:
            try:
                text = (await self._read(terminal.prompt if terminal.pending else _PROMPT)).strip()
            except (InterruptedReadError, EOFError) as end:
                if terminal.pending is None and isinstance(end, EOFError):
                    return
                say(_LEFT_OPEN if terminal.pending else _LEAVE_HINT)
                terminal.pending = None
                continue
            if text.casefold() in LEAVE:
                return
            name, _, argument = text.partition(" ")
            if name.casefold() in {"/", *COMMANDS}:
                await _guarded(self._command(name.casefold(), argument.strip()))
            elif text or (self._may_reply and terminal.default_reply and not self._attached):
                await _guarded(self._say(text))

    @property
    def _may_reply(self) -> bool:
        return self._terminal.pending is not None and self._request.takes_commands

    async def _say(self, text: str) -> None:
        terminal = self._terminal
        if terminal.pending is None:  # an error starts no turn
            command = await read_command(text, terminal.toolbox, [name.strip("/") for name in COMMANDS])
            if command is not None and command.is_error:
                raise RequestError(command.text)
        if not self._may_reply or self._attached:
            shown = terminal.last_question.question_id(terminal.session)
            question_id, files = shown if self._request.takes_commands else None, tuple(self._attached)
            self._attached.clear()
            terminal.pending = None
            await terminal.step(Say(text, self._request, question_id, files=files))
        elif reply := await terminal.reply_to(text, self._read):
            await terminal.step(reply)

    async def _command(self, name: str, argument: str) -> None:
        if not self._request.takes_commands:
            raise RequestError(NOT_TYPED)
        match name, argument:
            case "/" | "/help", "":
                rendering.console().print(rendering.table(("", ""), COMMANDS.items()))
                say("Ctrl-C stops a turn.")
                listed = await read_command("/help", self._terminal.toolbox)
                say(listed.text if listed else "", "")
            case "/why" | "/rest", "":
                await self._show(name)
            case "/writes" | "/commands", "on" | "off":
                setting, tools = _SWITCHES[name]
                self._terminal.context = self._terminal.context.model_copy(update={setting: argument == "on"})
                say(f"{tools} {'run after your approval' if argument == 'on' else 'only describe what they would do'}")
            case "/trace", "on" | "off":
                self._terminal.shows_trace = argument == "on"
            case "/continue", "":
                await self._resume(greets=False)
            case "/undo", _:
                message = undo_message(argument)
                self._terminal.pending = None
                await self._terminal.step(Say(message, self._request.changed(is_new=True)))
            case "/attach", file if file:
                self._attached.append(await asyncio.to_thread(file_part, Path(file)))
                say(f"{file} is attached to your next message")
            case "/reset", "":
                await self._reset()
            case _:
                written = f"{name} {argument}".strip()
                raise RequestError(f"{written!r} is not a command: /help lists the commands and their arguments")

    async def _show(self, name: str) -> None:
        terminal = self._terminal
        packet = (await terminal.sessions.state(terminal.session)).packet
        if not packet.content.original_prompt:
            raise SessionError(f"session {terminal.session!r} has no request yet")
        if name == "/why":
            rendering.console().print(rendering.trace_table(packet))
            return
        for call in packet.tool_routing.all_calls if packet.tool_routing else ():
            result = call.result or ToolResult(success=False)
            file = terminal.results.file(result.handle, terminal.session) if result.handle else None
            text = await asyncio.to_thread(file.read_text, errors="replace") if file else result.output
            say(f"{call.tool_name}:\n{text}", "")

    async def _resume(self, *, greets: bool) -> None:
        """Ask the open question again; continue an interrupted turn, or as a greeting say how to continue it."""
        state = await self._terminal.sessions.state(self._terminal.session)
        if state.question is not None:
            self._terminal.ask(state.question)
        elif state.is_unfinished and not greets:
            await self._terminal.step(Continue())
        elif state.is_unfinished:
            say("its last turn was interrupted: /continue continues it")
        elif not greets:
            say("nothing to continue: no question is open and no turn was interrupted")

    async def _reset(self) -> None:
        terminal = self._terminal
        reply = await terminal.read(f"Delete session {terminal.session}? [y/N] ")
        if reply.strip().casefold() not in {"y", "yes"}:
            say("nothing was deleted")
            return
        await terminal.sessions.forget(terminal.session)
        terminal.pending = None
        say(f"session {terminal.session} was deleted")


async def _guarded(turn: Coroutine[Any, Any, object]) -> None:
    running, loop = asyncio.ensure_future(turn), asyncio.get_running_loop()
    with on_ctrl_c(lambda: loop.call_soon_threadsafe(running.cancel)):
        try:
            await running
        except PacketgateError as error:
            sys.stdout.flush()
            say(error_line(error), "red", stderr=True)
        except Exception as error:  # a defect ends the turn, and not the session
            if isinstance(error, BrokenPipeError) or os.environ.get("PACKETGATE_DEBUG"):
                raise
            say(unexpected_error_line(error), "red", stderr=True)
        except asyncio.CancelledError:
            say(_STOPPED)
        except (InterruptedReadError, EOFError):
            say(_LEFT_OPEN)
