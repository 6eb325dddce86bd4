"""Commands that a user types as a message, such as `/read notes.txt`: they select their call without a decider."""

import asyncio
import re
from collections.abc import Collection, Sequence

from packetgate.deciders.protocols import SelectedCall, Selection
from packetgate.state.errors import RequestError
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import Alternative
from packetgate.state.sections import TypedCommand
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.toolbox import AllowedTools, Toolbox
from packetgate.tools.checks.checking import CheckedCall, resolve_values
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.typed_calls import LINE, command_names, parse_call, positional, render_call, tools_named

COMMAND = "you typed this command"
UNDO_TOOL = "ai.undo"
HELP = "A command calls exactly its tool, without a model. Optional arguments are given as `name=value`."
NOT_TYPED = (
    "Standard input holds requests only: type a command at a terminal, or pass it as an argument, as in "
    '`packetgate ask "/help"`.'
)
LISTED = 30
"""Maximum tools that `/help` lists."""
_HELP = re.compile(r"/(?:help)?", re.IGNORECASE)
_UNDO = re.compile(r"/undo(?:\s+(?P<change>[0-9a-f][0-9a-f-]{3,39}))?", re.IGNORECASE)


def undo_command(change: str = "") -> str:
    """Return the message that undoes a change, or the last change."""
    return f"/undo {change}".rstrip()


def is_undo(text: str) -> bool:
    """Whether a message is the command that undoes a change."""
    return _UNDO.fullmatch(text.strip()) is not None


async def read_command(text: str, toolbox: Toolbox, others: Collection[str] = ()) -> TypedCommand | None:
    """Return the command in a message; None if it is not a command, such as a text that begins with a path.

    If the command is unknown, wait for starting servers.

    Args:
        others: the names of other commands, which a mistyped name may mean.
    """
    text, command = text.strip(), None
    for waits in (False, True) if LINE.fullmatch(text) else ():
        if waits and not any(server.is_unknown for server in toolbox.health()):
            break
        catalogue = await toolbox.catalogue(wait_for_all=waits)
        every = toolbox.toolbox.last_catalogue if isinstance(toolbox, AllowedTools) else catalogue
        command = await asyncio.to_thread(_command_in, text, catalogue, every, ("help", "undo", *others))
        if command is not None and not command.is_error:
            break
    return command


def _command_in(text: str, catalogue: Catalogue, every: Catalogue, others: Collection[str]) -> TypedCommand | None:
    """Return the command in a line, given the allowed tools and `every` tool."""
    if undo := _UNDO.fullmatch(text):
        if UNDO_TOOL in catalogue:
            return TypedCommand(tool_name=UNDO_TOOL, params={"change": undo["change"]} if undo["change"] else {})
        reason = "Only changes of the built-in tools can be undone, and these tools are not available here."
        return TypedCommand(text=reason, is_error=True)
    if _HELP.fullmatch(text):
        names = command_names(catalogue) | {UNDO_TOOL: "undo"}
        tools = [catalogue[name] for name in catalogue.interleaved_names[:LISTED]]
        lines = sorted(f"- `{usage_of(one, names[one.name])}`: {one.brief.partition('. ')[0]}" for one in tools)
        more = [f"- and {len(catalogue) - LISTED} more tools"] if len(catalogue) > LISTED else []
        return TypedCommand(text="\n".join([f"{HELP}\n", *lines, *more]))
    name = line["name"] if (line := LINE.fullmatch(text)) else ""
    if name and not tools_named(name, catalogue) and tools_named(name, every):
        reason = f"`/{name}` calls a tool that is not allowed here. `/help` lists the commands of the allowed tools."
        return TypedCommand(text=reason, is_error=True)
    try:
        call = parse_call(text, catalogue, others)
    except RequestError as error:
        return TypedCommand(text=str(error), is_error=True)
    return None if call is None else TypedCommand(tool_name=call.tool_name, params=call.params)


def usage_of(spec: ToolSpec, name: str) -> str:
    """Return the typed form of a call, without optional arguments: `/write PATH CONTENT`."""
    return " ".join(
        [f"/{name}", *(one.upper() if one in spec.required else f"[{one.upper()}]" for one in positional(spec))]
    )


async def read_pick(text: str, offered: Sequence[Alternative], toolbox: Toolbox) -> TypedCommand | None:
    """Return the command of the offered call that the user picked by its number; None if the text is not a number of
    the list."""
    number = text.strip().rstrip(".")
    if not number.isdecimal() or not 1 <= int(number[:3]) <= len(offered):
        return None
    call, catalogue = offered[int(number[:3]) - 1], await toolbox.catalogue()
    if call.tool_name not in catalogue:
        return TypedCommand(text=f"The tool {call.tool_name} is not available any more.", is_error=True)
    line = await asyncio.to_thread(render_call, call.tool_name, call.params, catalogue)
    return await read_command(line, toolbox)


def command_selection(packet: CognitionPacket, catalogue: Catalogue) -> Selection | None:
    """Return the call of the command that the user typed; None if the request is not a command. May block."""
    command = packet.content.command
    if command is None:
        return None
    spec = catalogue.get(command.tool_name)
    if spec is None:
        reason = f"the tool {command.tool_name} is not available any more"
        return Selection(action="none", confidence=1.0, reasoning=reason, decided_by="reflex")
    params = {**spec.configured_defaults, **command.params}
    call = SelectedCall(
        tool_name=spec.name,
        params=params,
        reasoning=COMMAND,
        checked=resolve_values(CheckedCall(spec.name, params), spec),
    )
    return Selection.of_certain(call)
