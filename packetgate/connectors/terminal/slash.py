"""The state of `packetgate chat` between turns, and its slash commands."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from rich.text import Text

from packetgate.connectors import rendering
from packetgate.connectors.sessions import Sessions
from packetgate.connectors.terminal.reading import file_part
from packetgate.connectors.terminal.turns import Terminal, page
from packetgate.connectors.turn import Continue
from packetgate.graph.settings import Settings
from packetgate.models.options import ROLES
from packetgate.state.errors import RequestError, SessionError
from packetgate.state.packet import CognitionPacket
from packetgate.state.printing import counted, printable
from packetgate.state.routing import ToolCall, ToolResult
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

    async def resume(self) -> bool:
        """Ask the open question again, or continue an interrupted turn; return whether there was one."""
        state = await self.sessions.state(self.terminal.session)
        if state.question is not None:
            await self.terminal.put(state.question)
        elif state.is_unfinished:
            await self.terminal.step(Continue())
        return state.question is not None or state.is_unfinished

    async def greet(self) -> None:
        """Print the session's name, and ask its open question."""
        state = await self.sessions.state(self.terminal.session)
        self.say(f"session {self.terminal.session}; /help for help")
        if state.question is not None:
            await self.terminal.put(state.question)
        elif state.is_unfinished:
            self.say("its last turn was stopped before its end: /continue goes on with it")

    def say(self, text: str) -> None:
        """Print a line that is no answer."""
        rendering.console().print(rendering.plain(text, "dim"))


REASONS = {
    "permanent": "always there, by packetgate.toml",
    "recent": "used lately",
    "default": "for this kind of conversation",
    "ranked": "fits the request",
    "widened": "the search was widened",
    "described": "the model asked for it",
}


@dataclass(frozen=True)
class Command:
    """A slash command."""

    name: str
    takes: str
    does: str
    run: Callable[[Conversation, str], Awaitable[None]]
    choices: tuple[str, ...] = ()
    """The allowed arguments, if there are only a few."""


async def _why(chat: Conversation, _: str) -> None:
    rendering.console().print(rendering.journey(await chat.packet()))


async def _journey(chat: Conversation, _: str) -> None:
    chat.terminal.show_journey = not chat.terminal.show_journey
    chat.say(f"the journey is {'shown after each answer' if chat.terminal.show_journey else 'no longer shown'}")


async def _tools(chat: Conversation, words: str) -> None:
    packet = await chat.packet()
    wanted = words.casefold().split()
    entries = [
        entry
        for entry in packet.context.palette
        if all(word in f"{entry.tool_name} {entry.risk} {entry.reason}".casefold() for word in wanted)
    ]
    table = rendering.table("tool", "risk", "shown", "why it was there", wrapped=(3,))
    for entry in entries:
        score = f", score {entry.score:.2f}" if entry.score else ""
        risk = Text(entry.risk.value, style=rendering.RISK_STYLE[entry.risk.value])
        table.add_row(printable(entry.tool_name), risk, entry.shown, f"{REASONS[entry.reason]}{score}")
    if entries:
        rendering.console().print(table)
    chat.say(_about_palette(packet, wanted))


async def _model(chat: Conversation, words: str) -> None:
    made = chat.settings
    if words:
        made = await _with_model(chat, words)
    if made.url:
        chat.say(f"{made.url} answers, by its assistant {made.assistant}")
        return
    from packetgate.graph.pool import model_pool

    pool = model_pool(made)
    for roles in pool.players:
        chat.say(f"{' and '.join(roles)}: {pool.describe(roles[0])}")


async def _with_model(chat: Conversation, words: str) -> Settings:
    from packetgate.graph.pool import model_pool

    role, _, name = words.partition(" ")
    is_role = role in {*ROLES}
    if is_role and not name.strip():
        raise RequestError(f"/model {role} takes a model's name, as in /model {role} ollama:qwen3:4b")
    both = {"lite": words, "prime": "reflex"}
    made = chat.settings.model_copy(update={role: name.strip()} if is_role else both)
    with rendering.console(stderr=True).status("loading ..."):
        await chat.sessions.use_models(model_pool(made))
    chat.settings = made
    return made


def _switch(name: str, what: str) -> Callable[[Conversation, str], Awaitable[None]]:
    async def switch(chat: Conversation, choice: str) -> None:
        is_on = choice.casefold() == "on"
        chat.terminal.context = chat.terminal.context.model_copy(update={name: is_on})
        chat.say(f"{what} {'run, after your approval' if is_on else 'only tell what they would do'}")

    return switch


async def _go_on(chat: Conversation, _: str) -> None:
    if not await chat.resume():
        chat.say("nothing waits here")


async def _attach(chat: Conversation, file: str) -> None:
    chat.attached.append(await asyncio.to_thread(file_part, Path(file)))
    chat.say(f"{file} goes with what you say next")


async def _session(chat: Conversation, name: str) -> None:
    if not name:
        chat.say(f"packetgate chat --session {chat.terminal.session}")
        return
    chat.terminal.session, chat.terminal.pending = name, None
    await chat.greet()


async def _rest(chat: Conversation, _: str) -> None:
    packet = await chat.packet()
    calls = packet.tool_routing.all_calls if packet.tool_routing else ()
    parts = [await asyncio.to_thread(_whole, chat, call) for call in calls if call.result]
    if not parts:
        chat.say("the last turn's tools returned nothing")
        return
    text = Text("\n\n".join(parts))
    if not await page(text):
        rendering.console().print(text)


def _whole(chat: Conversation, call: ToolCall) -> str:
    result = call.result or ToolResult(success=False)
    file = chat.terminal.kept.file(result.handle, chat.terminal.session) if result.handle else None
    return printable(f"{call.tool_name}:\n{file.read_text(errors='replace') if file else result.output}")


async def _reset(chat: Conversation, _: str) -> None:
    said = await chat.terminal.read(f"Forget all of session {chat.terminal.session}? [y/N] ")
    if said.strip().casefold() not in {"y", "yes"}:
        chat.say("nothing was forgotten")
        return
    await chat.sessions.forget(chat.terminal.session)
    chat.terminal.pending = None
    chat.say(f"session {chat.terminal.session} begins anew")


async def _save(chat: Conversation, file: str) -> None:
    packet = await chat.packet()
    try:
        await asyncio.to_thread(_write, file, packet)
    except FileExistsError as error:
        raise RequestError(f"{file}: is there already: give another name") from error
    except OSError as error:
        raise RequestError(f"{file}: cannot be written: {error.strerror}") from error
    chat.say(f"saved: `packetgate trace {file}` shows it")


async def _leave(chat: Conversation, _: str) -> None:
    chat.is_over = True


def _write(file: str, packet: CognitionPacket) -> None:
    path = Path(file).expanduser()
    path.touch(mode=0o600, exist_ok=False)
    path.write_text(packet.model_dump_json(indent=2) + "\n", encoding="utf-8")


def _about_palette(packet: CognitionPacket, wanted: list[str]) -> str:
    context = packet.context
    if not context.palette and not wanted:
        return f"the last turn needed no tool; there are {context.available_count:,}"
    if not wanted:
        of = f"{len(context.palette):,} of {counted(context.available_count, 'tool')}"
        return f"{of}, {context.palette_tokens:,} tokens, for {packet.content.original_prompt[:80]!r}"
    others = [name for name in context.available_mcp_tools if all(word in name.casefold() for word in wanted)]
    if others := [name for name in others if name not in context.palette_names]:
        return f"not on the last palette: {', '.join(others[:20])}"
    if context.available_more:
        return f"none of the first {len(context.available_mcp_tools):,} has these words; `packetgate tools` lists all"
    return "nothing else has these words"


async def _help(chat: Conversation, _: str) -> None:
    table = rendering.table("", "", wrapped=(1,), header=False)
    for one in COMMANDS:
        table.add_row(f"{one.name} {one.takes}".rstrip(), rendering.plain(one.does, "dim"))
    rendering.console().print(table)
    chat.say("Enter sends; Alt+Enter, or a \\ at the end, begins a new line. Ctrl-C stops a turn.")


ON_OFF = ("on", "off")
_WRITES = _switch("allow_write_tools", "tools that change things")
_COMMANDS = _switch("allow_execute_tools", "tools that run commands")
ALIKE = 0.75
"""Similarity from which a word counts as a command while a question is open."""
COMMANDS = (
    Command("/help", "", "this list", _help),
    Command("/why", "", "the last packet's journey", _why),
    Command("/journey", "", "toggle the trace after each answer", _journey),
    Command("/tools", "[WORDS]", "the last palette and why each tool was on it, or what the words find", _tools),
    Command("/model", "[[lite|prime] NAME]", "show the models in use, or switch to another", _model),
    Command("/writes", "on|off", "allow tools that change things; each call still needs approval", _WRITES, ON_OFF),
    Command(
        "/commands", "on|off", "allow tools that execute commands; each call still needs approval", _COMMANDS, ON_OFF
    ),
    Command("/continue", "", "ask the open question again, or continue an interrupted turn", _go_on),
    Command("/attach", "FILE", "attach a picture or a text file to the next message", _attach),
    Command("/session", "[NAME]", "show the session's name, or switch to another session", _session),
    Command("/rest", "", "show everything that the last turn's tools returned", _rest),
    Command("/reset", "", "delete this session, after confirmation", _reset),
    Command("/save", "FILE", "save the last packet as JSON", _save),
    Command("/quit", "", "leave; the session is kept", _leave),
)
_BY_NAME = {one.name: one for one in COMMANDS} | {"/exit": COMMANDS[-1]}
_NAME = re.compile(r"/[a-z?]*(\s|$)", re.IGNORECASE)
"""Matches commands, but not `/etc/hosts`."""


def is_command(words: str, *, is_asked: bool = False) -> bool:
    """Whether a message is a slash command. While a question is open, `/tmp` may be an answer, but not `/hlep`."""
    if not is_asked:
        return _NAME.match(words) is not None
    name = words.partition(" ")[0].casefold()
    return name.startswith("/") and bool(get_close_matches(name, _BY_NAME, n=1, cutoff=ALIKE))


async def obey(chat: Conversation, words: str) -> None:
    """Run a slash command. Raise RequestError for an unknown command or argument."""
    name, _, rest = words.partition(" ")
    command, given = _BY_NAME.get(name.casefold()), rest.strip()
    if command is None:
        near = get_close_matches(name.casefold(), _BY_NAME, n=1, cutoff=0.4)
        meant = f"did you mean {near[0]}? " if near else ""
        raise RequestError(f"there is no {name}: {meant}/help lists all")
    wanted = command.choices and given.casefold() not in command.choices
    if wanted or (given and not command.takes) or (command.takes.isupper() and not given and "[" not in command.takes):
        raise RequestError(f"{command.name} takes {command.takes or 'nothing more'}, not {given or 'nothing'!r}")
    await command.run(chat, given)


def completions(text: str) -> list[tuple[str, str]]:
    """Return the completions of a command: the last word and its description."""
    name, blank, rest = text.partition(" ")
    if not blank:
        return [(one.name, one.does) for one in COMMANDS if text and one.name.startswith(text)]
    command = _BY_NAME.get(name)
    return [(choice, "") for choice in (command.choices if command else ()) if choice.startswith(rest)]
