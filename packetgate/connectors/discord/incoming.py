"""From a message on Discord to what the user says: words, and what came along with them as attachments."""

import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import discord

from packetgate.connectors.asking import Say
from packetgate.connectors.discord.errors import UNSENT
from packetgate.state.channels import WayOut
from packetgate.state.request import TurnRequest
from packetgate.state.sections import Attachment
from packetgate.tools.attached.parts import (
    MAX_PICTURES,
    MAX_TEXT_BYTES,
    SEE_ATTACHED,
    Part,
    part_of,
    plain_name,
    problem_with,
)
from packetgate.tools.attached.pictures import MAX_BYTES, picture_type

FILES = 5
"""The most files of a message that are read."""
REPLIES = 6
"""The most messages of a chain of replies that are read."""
PIECE = 40
"""Characters from which on a text that stands within another counts as a piece of it."""

WAY_OUT = WayOut(
    write="whoever runs this bot switches them on under `[discord.writes]`",
    execute="whoever runs this bot switches them on under `[discord.commands]`",
)

log = logging.getLogger(__name__)


@dataclass
class Incoming:
    """What a message says."""

    words: str
    person: str = ""
    """The id of who wrote it."""
    earlier: list[Attachment] = field(default_factory=list)
    """What the message replies to, oldest message first. Untrusted: none of it is the user's own words."""
    files: list[Part] = field(default_factory=list)
    """What is attached to it, likewise."""
    left_out: list[str] = field(default_factory=list)
    """What could not be read, each with the reason."""

    @property
    def turn(self) -> Say:
        """The turn it starts."""
        words = self.words or (SEE_ATTACHED if self.earlier or self.files else "Hello")
        request = TurnRequest(
            origin="discord", person=self.person, way_out=WAY_OUT, is_new=True, attachments=tuple(self.earlier)
        )
        return Say(words, request, files=tuple(self.files))


def is_addressed(message: discord.Message, me: discord.abc.User) -> bool:
    """Whether a person speaks to the bot: directly, by a mention, or in reply to it."""
    if message.author.bot or message.webhook_id or message.type not in _SPOKEN:
        return False
    if message.guild is None or me in message.mentions:
        return True
    earlier = message.reference.resolved if message.reference and message.type is discord.MessageType.reply else None
    return isinstance(earlier, discord.Message) and earlier.author == me


def words_of(message: discord.Message, me: discord.abc.User) -> str:
    """Return what a message says, without the mention of the bot."""
    return message.content.replace(f"<@{me.id}>", "").replace(f"<@!{me.id}>", "").strip()


async def read_message(message: discord.Message, me: discord.abc.User, known: Sequence[str]) -> Incoming:
    """Read a message with its files and the chain of replies that it ends.

    Args:
        message: the message.
        me: the bot.
        known: the messages that the session holds: of the chain, they and their pieces are passed over.
    """
    read = Incoming(words_of(message, me), str(message.author.id))
    chain = [(one, text) async for one in _chain(message) if (text := words_of(one, me)) and not _held(text, known)]
    read.earlier += [
        Attachment(name=f"earlier message of {plain_name(one.author.name)}", text=text, size=len(text.encode()))
        for one, text in reversed(chain)
    ]
    for at, file in enumerate(message.attachments):
        data, problem = await _read_file(file) if at < FILES else (b"", f"{FILES} files are the most")
        problem = problem or problem_with(data)
        if not problem and picture_type(data) and sum(one["type"] == "image" for one in read.files) == MAX_PICTURES:
            problem = f"{MAX_PICTURES} pictures are the most"
        if problem:
            read.left_out.append(f"{plain_name(file.filename)} was left out: {problem}")
        else:
            read.files.append(part_of(file.filename, data))
    return read


async def _chain(message: discord.Message) -> AsyncIterator[discord.Message]:
    """Yield what a message replies to, what that replies to, and so on."""
    for _ in range(REPLIES):
        reference = message.reference
        if reference is None or reference.message_id is None or message.type is not discord.MessageType.reply:
            return
        earlier = reference.resolved or reference.cached_message
        if earlier is None:
            try:
                earlier = await message.channel.fetch_message(reference.message_id)
            except UNSENT as error:
                log.info("message %d cannot be read: %s", reference.message_id, type(error).__name__)
                return
        if not isinstance(earlier, discord.Message):  # it was deleted
            return
        message = earlier
        yield message


async def _read_file(file: discord.Attachment) -> tuple[bytes, str]:
    """Return a file, or why it cannot be read."""
    most = MAX_BYTES if (file.content_type or "").startswith("image/") else MAX_TEXT_BYTES
    if file.size > most:
        return b"", f"it has {file.size:,} bytes, {most:,} are the most"
    try:
        return await file.read(), ""
    except UNSENT as error:
        log.info("attachment %d cannot be read: %s", file.id, type(error).__name__)
        return b"", "it cannot be downloaded"


def _held(text: str, known: Sequence[str]) -> bool:
    return any(text == one or (len(text) >= PIECE and text in one) for one in known)


_SPOKEN = {discord.MessageType.default, discord.MessageType.reply}
