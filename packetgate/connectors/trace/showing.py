"""What `packetgate trace` shows, and what it saves."""

import asyncio
import sys
from pathlib import Path

from rich.text import Text

from packetgate.connectors import rendering
from packetgate.connectors.trace.finding import LAST, SHORTEST, Past, find, is_packet_id, open_archive
from packetgate.graph.settings import Settings
from packetgate.state.errors import PacketError
from packetgate.state.packet import read_packet
from packetgate.state.printing import printable


async def show(
    settings: Settings, wanted: str, session: str | None, html: Path | None, *, force: bool, as_json: bool
) -> int:
    """Print a packet's journey or its JSON, and save its page where one is wanted.

    Raises:
        PacketError, SessionError: there is no such packet.
        ConfigError: where packets are kept cannot be opened, or the page cannot be written.
    """
    past = await _past(settings, wanted, session)
    if html is not None:
        from packetgate.connectors.trace.page import page

        await asyncio.to_thread(lambda: rendering.save(html, page(past), force=force))
        rendering.console(stderr=True).print(Text(f"saved {html}", style="dim"))
    if as_json:
        sys.stdout.write(past.packet.model_dump_json(indent=2) + "\n")
    else:
        _print(past)
    return 0


async def _past(settings: Settings, wanted: str, session: str | None) -> Past:
    if session is None and (wanted == "-" or await asyncio.to_thread(_is_readable, wanted)):
        return Past(read_packet(await asyncio.to_thread(_read, wanted)))
    if wanted != LAST and not is_packet_id(wanted):
        raise PacketError(
            f"{printable(wanted)[:200]}: neither a file nor a packet's id: give {SHORTEST} or more of its characters, "
            "or `last`"
        )
    async with open_archive(settings) as archive:
        return await find(archive, wanted, session)


def _is_readable(file: str) -> bool:
    """Whether there is a file, or a pipe, of that name."""
    try:
        return Path(file).exists() and not Path(file).is_dir()
    except OSError:  # such as a name longer than names may be
        return False


def _read(file: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise PacketError(f"{file}: cannot be read: {error.strerror}") from error


def _print(past: Past) -> None:
    out = rendering.console()
    out.print(Text(printable(past.packet.content.original_prompt), style="bold"))
    if past.packet.response.candidate:
        out.print(rendering.answer(past.packet))
    if past.question is not None:
        out.print(rendering.question(past.question))
    out.print()
    out.print(rendering.journey(past.packet))
