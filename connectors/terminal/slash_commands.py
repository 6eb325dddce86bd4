"""What each slash command does."""

import asyncio
from pathlib import Path

from rich.table import Table
from rich.text import Text

from connectors import rendering
from connectors.terminal.conversation import Conversation
from state.errors import RequestError
from state.packet import CognitionPacket
from state.printing import counted, printable

REASONS = {
    "permanent": "always there, by packetgate.toml",
    "recent": "used lately",
    "default": "for this kind of conversation",
    "ranked": "fits the request",
    "widened": "the search was widened",
    "described": "the model asked for it",
}


async def why(chat: Conversation, _: str) -> None:
    """Show the last packet's journey."""
    rendering.console().print(rendering.journey(await chat.packet()))


async def journey(chat: Conversation, _: str) -> None:
    """Show the journey after each answer, or no longer."""
    chat.terminal.show_journey = not chat.terminal.show_journey
    chat.say(f"the journey is {'shown after each answer' if chat.terminal.show_journey else 'no longer shown'}")


async def tools(chat: Conversation, words: str) -> None:
    """Show the last palette, as far as the words fit, and what else they find."""
    packet = await chat.packet()
    wanted = words.casefold().split()
    entries = [
        entry
        for entry in packet.context.palette
        if all(word in f"{entry.tool_name} {entry.risk} {entry.reason}".casefold() for word in wanted)
    ]
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("tool", style="cyan", no_wrap=True)
    table.add_column("risk", no_wrap=True)
    table.add_column("shown", no_wrap=True)
    table.add_column("why it was there", overflow="fold")
    for entry in entries:
        score = f", score {entry.score:.2f}" if entry.score else ""
        risk = Text(entry.risk.value, style=rendering.RISK_STYLE[entry.risk.value])
        table.add_row(printable(entry.tool_name), risk, entry.shown, f"{REASONS[entry.reason]}{score}")
    if entries:
        rendering.console().print(table)
    chat.say(_about_palette(packet, wanted))


async def model(chat: Conversation, _: str) -> None:
    """Say who answers."""
    made = chat.settings
    if made.url:
        chat.say(f"{made.url} answers, by its assistant {made.assistant}")
        return
    from models.pool import ModelPool

    pool = ModelPool(made.lite, made.prime)
    for roles in pool.players:
        chat.say(f"{' and '.join(roles)}: {pool.describe(roles[0])}")


async def writes(chat: Conversation, choice: str) -> None:
    """Let writes run, or no longer."""
    _switch(chat, "allow_write_tools", "tools that change things", choice)


async def commands(chat: Conversation, choice: str) -> None:
    """Let commands run, or no longer."""
    _switch(chat, "allow_execute_tools", "tools that run commands", choice)


async def go_on(chat: Conversation, _: str) -> None:
    """Put the pending question again, or go on with the turn that was stopped."""
    if not await chat.resume():
        chat.say("nothing waits here")


async def session(chat: Conversation, name: str) -> None:
    """Say which session this is, or go to another."""
    if not name:
        chat.say(f"packetgate chat --session {chat.terminal.session}")
        return
    chat.terminal.session = name
    await chat.greet()


async def reset(chat: Conversation, _: str) -> None:
    """Forget the session, if that is meant."""
    said = await chat.terminal.read(f"Forget all of session {chat.terminal.session}? [y/N] ")
    if said.strip().casefold() not in {"y", "yes"}:
        chat.say("nothing was forgotten")
        return
    await chat.sessions.forget(chat.terminal.session)
    chat.say(f"session {chat.terminal.session} begins anew")


async def save(chat: Conversation, file: str) -> None:
    """Keep the last packet as JSON, in a new file."""
    packet = await chat.packet()
    try:
        await asyncio.to_thread(_write, file, packet)
    except FileExistsError as error:
        raise RequestError(f"{file}: is there already: give another name") from error
    except OSError as error:
        raise RequestError(f"{file}: cannot be written: {error.strerror}") from error
    chat.say(f"saved: `packetgate trace {file}` shows it")


async def leave(chat: Conversation, _: str) -> None:
    """End the conversation."""
    chat.is_over = True


def _write(file: str, packet: CognitionPacket) -> None:
    path = Path(file).expanduser()
    path.touch(mode=0o600, exist_ok=False)
    path.write_text(packet.model_dump_json(indent=2) + "\n", encoding="utf-8")


def _switch(chat: Conversation, name: str, what: str, choice: str) -> None:
    chat.terminal.context = chat.terminal.context.model_copy(update={name: choice.casefold() == "on"})
    chat.say(f"{what} {'run, after your approval' if choice.casefold() == 'on' else 'only tell what they would do'}")


def _about_palette(packet: CognitionPacket, wanted: list[str]) -> str:
    """Say how large the palette was, and what the words find that was not on it."""
    context = packet.context
    if not context.palette and not wanted:
        return f"the last turn needed no tool; there are {len(context.available_mcp_tools):,}"
    if not wanted:
        return (
            f"{len(context.palette):,} of {counted(len(context.available_mcp_tools), 'tool')}, "
            f"{context.palette_tokens:,} tokens, for {packet.content.original_prompt[:80]!r}"
        )
    others = [
        name
        for name in context.available_mcp_tools
        if name not in context.palette_names and all(word in name.casefold() for word in wanted)
    ]
    return f"not on the last palette: {', '.join(others[:20])}" if others else "nothing else has these words"
