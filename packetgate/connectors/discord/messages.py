"""Discord messages: read a user's message, and show a turn's progress and answer in one."""

import asyncio
import io
import logging
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import discord

from packetgate.connectors.discord.presenting import split
from packetgate.connectors.turn import Say
from packetgate.state.channels import SwitchHints
from packetgate.state.request import TurnRequest
from packetgate.state.routing import ResultAttachment
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
from packetgate.tools.attached.pictures import MAX_BYTES, kept_picture, picture_type
from packetgate.tools.text.result_store import ResultStore

UNSENT = (discord.HTTPException, aiohttp.ClientError)
"""Errors of a request to Discord: refused, or Discord cannot be reached."""


FILES = 5
"""Most files read from a message."""
REPLIES = 6
"""Most messages read from a chain of replies."""
PIECE = 40
"""Shortest text that counts as a part of a longer message."""

WAY_OUT = SwitchHints(
    write="whoever runs this bot switches them on under `[discord.writes]`",
    execute="whoever runs this bot switches them on under `[discord.commands]`",
)

log = logging.getLogger(__name__)


@dataclass
class Incoming:
    """The content of a message."""

    words: str
    person: str = ""
    """The id of the author."""
    earlier: list[Attachment] = field(default_factory=list)
    """The messages it replies to, oldest first. Untrusted: they are not the user's own words."""
    files: list[Part] = field(default_factory=list)
    """Its attachments, also untrusted."""
    left_out: list[str] = field(default_factory=list)
    """Files that could not be read, each with the reason."""

    @property
    def turn(self) -> Say:
        """The turn that it starts."""
        words = self.words or (SEE_ATTACHED if self.earlier or self.files else "Hello")
        request = TurnRequest(
            origin="discord", person=self.person, way_out=WAY_OUT, is_new=True, attachments=tuple(self.earlier)
        )
        return Say(words, request, files=tuple(self.files))


def is_addressed(message: discord.Message, me: discord.abc.User) -> bool:
    """Whether a person addresses the bot: by direct message, mention or reply."""
    if message.author.bot or message.webhook_id or message.type not in _SPOKEN:
        return False
    if message.guild is None or me in message.mentions:
        return True
    earlier = message.reference.resolved if message.reference and message.type is discord.MessageType.reply else None
    return isinstance(earlier, discord.Message) and earlier.author == me


def words_of(message: discord.Message, me: discord.abc.User) -> str:
    """Return a message's text without the mention of the bot."""
    return message.content.replace(f"<@{me.id}>", "").replace(f"<@!{me.id}>", "").strip()


async def read_message(message: discord.Message, me: discord.abc.User, known: Sequence[str]) -> Incoming:
    """Read a message, its files and the messages it replies to.

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


MAX_UPLOAD_BYTES = 8_000_000
MAX_UPLOADS = 4
"""Most pictures attached to one answer."""


def pictures_of(
    attachments: Iterable[ResultAttachment], kept: ResultStore, session: str
) -> tuple[list[discord.File], list[str]]:
    """Return the pictures that a session keeps and that are what they are declared to be, and a note on each other
    attachment. Blocking.
    """
    pictures: list[discord.File] = []
    notes: list[str] = []
    for one in attachments:
        fits = one.size <= MAX_UPLOAD_BYTES and len(pictures) < MAX_UPLOADS
        data = kept_picture(one, kept, session) if fits else None
        if data is None:
            notes.append(f"`{one.description.replace('`', ' ')}` is not shown here")
        else:
            name = f"image-{len(pictures) + 1}.{one.mime_type.removeprefix('image/')}"
            pictures.append(discord.File(io.BytesIO(data), name))
    return pictures, notes


PAUSE_S = 1.2
"""Seconds between two edits: Discord allows about five edits in five seconds, for all messages."""

STAGES = {
    "wait": "waiting for another turn of this conversation",
    "open_packet": "reading",
    "detect_intent": "understanding",
    "build_palette": "choosing tools",
    "select_tool": "planning the call",
    "review_selection": "reviewing it",
    "ask_user": "taking your word",
    "execute_tool": "running it",
    "inject_result": "looking at the result",
    "respond": "writing the answer",
}
"""What a stage does, in words for users."""


class LiveMessage:
    """A reply that is edited at most every `pause_s` seconds, always with the newest text."""

    def __init__(self, to: discord.Message | discord.PartialMessage, pause_s: float = PAUSE_S) -> None:
        self.notes: list[str] = []
        """Notes shown above the answer."""
        self.is_over = False
        """Whether the answer or a question was sent or is being sent."""
        self._to = to
        self._pause_s = pause_s
        self._sent: discord.Message | None = None
        self._text = ""
        self._changed = asyncio.Event()
        self._editing = asyncio.Lock()
        self._following: asyncio.Task[None] | None = None

    @property
    def channel(self) -> discord.abc.Messageable:
        """The channel of the message."""
        return self._to.channel

    async def show(self, stage: str) -> None:
        """Show that a stage has begun."""
        self._text = f"*{STAGES.get(stage, stage)} …*"
        if self._sent is not None:
            self._changed.set()
            return
        sent = await self.place()
        self._following = asyncio.create_task(self._follow(sent))

    async def place(self) -> discord.Message:
        """Return the message, sending it first if necessary."""
        if self._sent is None:
            self._sent = await self._send(self._text or "…", suppress_embeds=True)
        return self._sent

    def begin_anew(self) -> None:
        """Leave the message as it is and use a new one from here on."""
        self.notes, self.is_over, self._sent, self._following = [], False, None, None

    async def end(self, answer: str) -> None:
        """Replace the message with the notes and the answer, continued in further messages if it is long."""
        notes = [f"-# {note}" for note in self.notes]
        first, *more = split("\n".join([*notes, answer]))
        await self._finally(content=first, suppress=True)
        for text in more:
            await self.channel.send(text, suppress_embeds=True)

    async def attach(self, files: list[discord.File]) -> None:
        """Send files below the answer, one per message, so that a refused file does not affect the others."""
        for file in files:
            try:
                await self.channel.send(file=file)
            except UNSENT as error:
                log.warning("a picture cannot be sent: %s", type(error).__name__)

    async def ask(self, content: str, view: discord.ui.View, **parts: Any) -> discord.Message:
        """Replace the message with a question and return it."""
        return await self._finally(content=content, view=view, suppress=False, **parts)

    async def _finally(self, *, suppress: bool, **parts: Any) -> discord.Message:
        self.is_over = True
        async with self._editing:
            if self._following is not None:
                self._following.cancel()
        if self._sent is not None:
            try:
                return await self._sent.edit(suppress=suppress, **parts)
            except discord.NotFound:
                log.info("message %d was deleted: the answer goes into a new one", self._sent.id)
        files = {"files": parts.pop("attachments")} if "attachments" in parts else {}
        return await self._send(suppress_embeds=suppress, **parts, **files)

    async def _send(self, content: str, **parts: Any) -> discord.Message:
        reference = self._to.to_reference(fail_if_not_exists=False)
        return await self.channel.send(content, reference=reference, **parts)

    async def _follow(self, sent: discord.Message) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            async with self._editing:
                try:
                    await sent.edit(content=self._text, suppress=True)
                except UNSENT as error:  # the turn goes on all the same
                    log.warning("progress cannot be shown in message %d: %s", sent.id, type(error).__name__)
                    return
            await asyncio.sleep(self._pause_s)
