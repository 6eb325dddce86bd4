"""From a message on Discord to what the user says: words, and what came along with them as attachments."""

import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import discord

from connectors.asking import Say
from connectors.discord.errors import UNSENT
from state.request import TurnRequest

FILES = 5
"""The most files of a message that are read."""
FILE_BYTES = 200_000
"""The largest file that is read."""
REPLIES = 6
"""The most messages of a chain of replies that are read."""
PIECE = 40
"""Characters from which on a text that stands within another counts as a piece of it."""

log = logging.getLogger(__name__)


@dataclass
class Incoming:
    """What a message says."""

    words: str
    person: str = ""
    """The id of who wrote it."""
    attachments: list[tuple[str, str]] = field(default_factory=list)
    """(name, text), oldest message first. Untrusted: none of it is the user's own words."""
    left_out: list[str] = field(default_factory=list)
    """What could not be read, each with the reason."""

    @property
    def turn(self) -> Say:
        """The turn it starts."""
        words = self.words or ("See what is attached." if self.attachments else "Hello")
        return Say(words, TurnRequest(origin="discord", person=self.person, attachments=tuple(self.attachments)))


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
    read.attachments += [(f"earlier message of {_name(one.author.name)}", text) for one, text in reversed(chain)]
    for file in message.attachments[:FILES]:
        text, problem = await _read_file(file)
        if problem:
            read.left_out.append(f"{_name(file.filename)} was left out: {problem}")
        else:
            read.attachments.append((_name(file.filename), text))
    read.left_out += [
        f"{_name(file.filename)} was left out: {FILES} files are the most" for file in message.attachments[FILES:]
    ]
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


async def _read_file(file: discord.Attachment) -> tuple[str, str]:
    """Return a file's text, or why it cannot be read."""
    if file.size > FILE_BYTES:
        return "", f"it has {file.size:,} bytes, {FILE_BYTES:,} are the most"
    try:
        text = (await file.read()).decode("utf-8-sig")
    except UnicodeDecodeError:
        return "", "it is not text in UTF-8"
    except UNSENT as error:
        log.info("attachment %d cannot be read: %s", file.id, type(error).__name__)
        return "", "it cannot be downloaded"
    return ("", "it is not text") if "\0" in text else (text, "")


def _held(text: str, known: Sequence[str]) -> bool:
    return any(text == one or (len(text) >= PIECE and text in one) for one in known)


def _name(name: str) -> str:
    """Return a name that somebody else chose, on one short line."""
    return "".join(char if char.isprintable() else "?" for char in name)[:80]


_SPOKEN = {discord.MessageType.default, discord.MessageType.reply}
