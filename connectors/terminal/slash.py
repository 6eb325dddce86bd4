"""The slash commands of `packetgate chat`."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from difflib import get_close_matches

from rich.table import Table

from connectors import rendering
from connectors.terminal import slash_commands as do
from connectors.terminal.conversation import Conversation
from state.errors import RequestError


@dataclass(frozen=True)
class Command:
    """What somebody can ask of the conversation itself."""

    name: str
    takes: str
    does: str
    run: Callable[[Conversation, str], Awaitable[None]]
    choices: tuple[str, ...] = ()
    """What it may be given, where that is one of a few words."""


async def _help(chat: Conversation, _: str) -> None:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(style="dim", overflow="fold")
    for one in COMMANDS:
        table.add_row(f"{one.name} {one.takes}".rstrip(), one.does)
    rendering.console().print(table)
    chat.say("Enter sends; Alt+Enter, or a \\ at the end, begins a new line. Ctrl-C stops a turn.")


ON_OFF = ("on", "off")
COMMANDS = (
    Command("/help", "", "this list", _help),
    Command("/why", "", "the last packet's journey", do.why),
    Command("/journey", "", "show, or no longer show, the journey after each answer", do.journey),
    Command("/tools", "[WORDS]", "the last palette and why each tool was on it, or what the words find", do.tools),
    Command("/model", "", "who answers", do.model),
    Command("/writes", "on|off", "let tools that change things run, after approval", do.writes, ON_OFF),
    Command("/commands", "on|off", "let tools that run commands run, after approval", do.commands, ON_OFF),
    Command("/continue", "", "the question that waits, or the turn that was stopped", do.go_on),
    Command("/session", "[NAME]", "which session this is, or another one", do.session),
    Command("/reset", "", "forget this session, after a question", do.reset),
    Command("/save", "FILE", "keep the last packet as JSON", do.save),
    Command("/quit", "", "leave; the session stays", do.leave),
)
_BY_NAME = {one.name: one for one in COMMANDS} | {"/exit": COMMANDS[-1]}
_COMMAND = re.compile(r"/[a-z?]*(\s|$)", re.IGNORECASE)
"""What is meant as a command: `/etc/hosts` is not."""


def is_command(words: str) -> bool:
    """Whether these words are for the conversation itself."""
    return _COMMAND.match(words) is not None


async def obey(chat: Conversation, words: str) -> None:
    """Do what a slash command says.

    Raises:
        RequestError: there is no such command, or it does not take that.
    """
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
    """Return what may follow a text that begins a command: the whole last word, and what it means."""
    name, blank, rest = text.partition(" ")
    if not blank:
        return [(one.name, one.does) for one in COMMANDS if text and one.name.startswith(text)]
    command = _BY_NAME.get(name)
    return [(choice, "") for choice in (command.choices if command else ()) if choice.startswith(rest)]
