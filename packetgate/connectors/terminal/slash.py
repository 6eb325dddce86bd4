"""The state of `packetgate chat` between turns, and its slash commands."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from packetgate.connectors import rendering
from packetgate.connectors.sessions import Sessions
from packetgate.connectors.terminal.reading import file_part
from packetgate.connectors.terminal.turns import Terminal
from packetgate.connectors.turn import Continue
from packetgate.graph.settings import Settings
from packetgate.models.options import ROLES
from packetgate.state.errors import RequestError, SessionError
from packetgate.state.packet import CognitionPacket
from packetgate.state.printing import printable
from packetgate.state.routing import ToolCall
from packetgate.tools.attached.parts import Part


@dataclass
class Conversation:
    """A conversation at a terminal."""

    terminal: Terminal
    settings: Settings
    is_over: bool = False
    attached: list[Part] = field(default_factory=list)
    """Attachments of the next message."""

    @property
    def sessions(self) -> Sessions:
        """The sessions of the terminal."""
        return self.terminal.sessions

    async def packet(self) -> CognitionPacket:
        """Return the last turn's packet. Raise SessionError if there has been no turn."""
        packet = (await self.sessions.state(self.terminal.session)).packet
        if not packet.content.original_prompt:
            raise SessionError(f"nothing has been asked in session {self.terminal.session!r} yet")
        return packet

    async def greet(self) -> None:
        """Print the session's name, and ask its open question."""
        state = await self.sessions.state(self.terminal.session)
        rendering.say(f"session {self.terminal.session}; /help for help")
        if state.question is not None:
            await self.terminal.ask(state.question)
        elif state.is_unfinished:
            rendering.say("its last turn was interrupted: /continue continues it")


Handler = Callable[[Conversation, str], Awaitable[None]]


@dataclass(frozen=True)
class Command:
    """A slash command."""

    name: str
    argument: str
    """Its argument as help shows it: in brackets if optional, `on|off` for a choice, empty if there is none."""
    about: str
    run: Handler


COMMANDS: list[Command] = []
"""In the order of the help."""
_ON_OFF = "on|off"


def _command(name: str, argument: str, about: str) -> Callable[[Handler], Handler]:
    def register(run: Handler) -> Handler:
        COMMANDS.append(Command(name, argument, about, run))
        return run

    return register


@_command("/help", "", "this list")
async def _help(_chat: Conversation, _: str) -> None:
    table = rendering.table("", "", wrapped=(1,), header=False)
    for command in COMMANDS:
        table.add_row(f"{command.name} {command.argument}".rstrip(), rendering.plain(command.about, "dim"))
    rendering.console().print(table)
    rendering.say("Enter sends; Alt+Enter, or a \\ at the end, begins a new line. Ctrl-C stops a turn.")


@_command("/why", "", "the last packet's trace")
async def _why(chat: Conversation, _: str) -> None:
    rendering.console().print(rendering.trace_table(await chat.packet()))


@_command("/tools", "", "the last palette, and why each tool was on it")
async def _tools(chat: Conversation, _: str) -> None:
    packet = await chat.packet()
    table = rendering.table("tool", "risk", "shown", "reason", wrapped=(3,))
    for entry in packet.context.palette:
        score = f", score {entry.score:.2f}" if entry.score else ""
        risk = rendering.plain(entry.risk.value, rendering.RISK_STYLE[entry.risk.value])
        table.add_row(printable(entry.tool_name), risk, entry.shown, f"{entry.reason}{score}")
    rendering.console().print(table)
    count = f"{len(packet.context.palette):,} of {packet.context.available_count:,} tools"
    rendering.say(f"{count} for {packet.content.original_prompt[:80]!r}; `packetgate tools` lists all")


@_command("/model", "[[lite|prime] NAME]", "show the models in use, or switch to another")
async def _model(chat: Conversation, words: str) -> None:
    from packetgate.graph.composition import model_pool

    role, _, name = words.partition(" ")
    if role in ROLES and not name.strip():
        raise RequestError(f"/model {role} takes a model's name, as in /model {role} ollama:qwen3:4b")
    if words:
        both = {"lite": words, "prime": "reflex"}
        settings = chat.settings.model_copy(update={role: name.strip()} if role in ROLES else both)
        with rendering.console(stderr=True).status("loading ..."):
            await chat.sessions.use_models(model_pool(settings))
        chat.settings = settings
    if chat.settings.url:
        rendering.say(f"{chat.settings.url} answers, by its assistant {chat.settings.assistant}")
        return
    pool = model_pool(chat.settings)
    for roles in pool.players:
        rendering.say(f"{' and '.join(roles)}: {pool.describe(roles[0])}")


@_command("/writes", _ON_OFF, "allow tools that change things; each call still needs approval")
async def _writes(chat: Conversation, choice: str) -> None:
    _switch(chat, "allow_write_tools", choice, "tools that change things")


@_command("/commands", _ON_OFF, "allow tools that execute commands; each call still needs approval")
async def _commands(chat: Conversation, choice: str) -> None:
    _switch(chat, "allow_execute_tools", choice, "tools that execute commands")


def _switch(chat: Conversation, setting: str, choice: str, tools: str) -> None:
    is_on = choice.casefold() == "on"
    chat.terminal.context = chat.terminal.context.model_copy(update={setting: is_on})
    rendering.say(f"{tools} {'run after your approval' if is_on else 'only say what they would do'}")


@_command("/continue", "", "ask the open question again, or continue an interrupted turn")
async def _continue(chat: Conversation, _: str) -> None:
    state = await chat.sessions.state(chat.terminal.session)
    if state.question is not None:
        await chat.terminal.ask(state.question)
    elif state.is_unfinished:
        await chat.terminal.step(Continue())
    else:
        rendering.say("there is nothing to continue")


@_command("/attach", "FILE", "attach a picture or a text file to the next message")
async def _attach(chat: Conversation, file: str) -> None:
    chat.attached.append(await asyncio.to_thread(file_part, Path(file)))
    rendering.say(f"{file} is attached to your next message")


@_command("/session", "[NAME]", "show the session's name, or switch to another session")
async def _session(chat: Conversation, name: str) -> None:
    if not name:
        rendering.say(f"packetgate chat --session {chat.terminal.session}")
        return
    chat.terminal.session, chat.terminal.pending = name, None
    await chat.greet()


@_command("/rest", "", "show everything that the last turn's tools returned")
async def _rest(chat: Conversation, _: str) -> None:
    packet = await chat.packet()
    calls = packet.tool_routing.all_calls if packet.tool_routing else ()
    parts = [await asyncio.to_thread(_full_result, chat, call) for call in calls if call.result]
    if not parts:
        rendering.say("the last turn's tools returned nothing")
        return
    rendering.say("\n\n".join(parts), "")


def _full_result(chat: Conversation, call: ToolCall) -> str:
    handle, output = (call.result.handle, call.result.output) if call.result else ("", "")
    file = chat.terminal.results.file(handle, chat.terminal.session) if handle else None
    return f"{call.tool_name}:\n{file.read_text(errors='replace') if file else output}"


@_command("/reset", "", "delete this session, after confirmation")
async def _reset(chat: Conversation, _: str) -> None:
    reply = await chat.terminal.read(f"Delete session {chat.terminal.session}? [y/N] ")
    if reply.strip().casefold() not in {"y", "yes"}:
        rendering.say("nothing was deleted")
        return
    await chat.sessions.forget(chat.terminal.session)
    chat.terminal.pending = None
    rendering.say(f"session {chat.terminal.session} was deleted")


@_command("/quit", "", "leave; the session is kept")
async def _quit(chat: Conversation, _: str) -> None:
    chat.is_over = True


_BY_NAME = {command.name: command for command in COMMANDS} | {"/exit": COMMANDS[-1]}
_NAME = re.compile(r"/[a-z?]*(\s|$)", re.IGNORECASE)
"""Matches commands, but not `/etc/hosts`."""


def is_command(text: str, *, replies: bool = False) -> bool:
    """Whether a message is a slash command; in reply to a question, only one with a known name."""
    return text.partition(" ")[0].casefold() in _BY_NAME if replies else _NAME.match(text) is not None


async def run_command(chat: Conversation, text: str) -> None:
    """Run a slash command. Raise RequestError for an unknown command or argument."""
    name, _, argument = text.partition(" ")
    command, argument = _BY_NAME.get(name.casefold()), argument.strip()
    if command is None:
        raise RequestError(f"{name}: unknown command: /help lists all")
    if command.argument == _ON_OFF:
        is_valid = argument.casefold() in {"on", "off"}
    else:
        is_valid = bool(command.argument) if argument else command.argument[:1] in {"", "["}
    if not is_valid:
        raise RequestError(f"{command.name} takes {command.argument or 'no argument'}, not {argument!r}")
    await command.run(chat, argument)
