"""Discord messages: read a user's message, and reply to it."""

import io
import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import discord

from packetgate.connectors.discord.points import Point, Points
from packetgate.connectors.turn import Say
from packetgate.state.channels import BY_COMMAND, SwitchHints
from packetgate.state.context import RoutingContext
from packetgate.state.request import TurnRequest
from packetgate.state.routing import ResultAttachment
from packetgate.state.sections import Attachment
from packetgate.tools.attached.media import MAX_PICTURE_BYTES, picture_type, stored_picture
from packetgate.tools.attached.parts import (
    MAX_ATTACHED_TEXT_BYTES,
    MAX_PICTURES,
    REQUEST_WITHOUT_TEXT,
    Part,
    attachment_problem,
    message_part,
    printable_name,
)
from packetgate.tools.text.result_store import ResultStore

REQUEST_ERRORS = (discord.HTTPException, aiohttp.ClientError)
"""Errors of requests that Discord refused, or that could not reach Discord."""
MESSAGE_CHARS = 2_000
FENCE_CHARS = 60
"""Maximum characters of a code block's opening or closing line."""
MAX_MESSAGE_FILES = 5
MAX_UPLOAD_BYTES = 8_000_000
MAX_UPLOADS = 4
_QUOTE = re.compile(r"^ {0,9}(?:> ?){0,9}")
_LANGUAGE = re.compile(r"([\w+#.-]{1,30})\s*")
_SWITCH_HINTS = SwitchHints(
    **BY_COMMAND,
    write="whoever runs this bot can switch them on under `[discord.writes]`",
    execute="whoever runs this bot can switch them on under `[discord.commands]`",
)
log = logging.getLogger(__name__)


def is_addressed(message: discord.Message, me: discord.abc.User) -> bool:
    """Whether a person addresses the bot: by direct message, mention or reply."""
    is_plain = message.type in {discord.MessageType.default, discord.MessageType.reply}
    if message.author.bot or message.webhook_id or not is_plain:
        return False
    if message.guild is None or me in message.mentions:
        return True
    earlier = message.reference.resolved if message.reference else None
    return isinstance(earlier, discord.Message) and earlier.author == me


def words_in_message(message: discord.Message, me: discord.abc.User) -> str:
    """Return a message's text without the mention of the bot."""
    return message.content.replace(f"<@{me.id}>", "").replace(f"<@!{me.id}>", "").strip()


def continues_without_reply(message: discord.Message, me: discord.abc.User) -> bool:
    """Whether a message continues the last conversation: in a thread, or a direct message without a mention."""
    return isinstance(message.channel, discord.Thread) or (message.guild is None and me not in message.mentions)


async def read_turn(message: discord.Message, me: discord.abc.User, *, is_known_reply: bool) -> tuple[Say, list[str]]:
    """Return the turn that a message starts, and a note on each file that is left out.

    Files are data, not the user's own words. So is the message that the user replies to, with its files. That message
    is attached unless it `is_known_reply`: then the conversation contains it.
    """
    words = words_in_message(message, me)
    earlier: tuple[Attachment, ...] = ()
    quoted = message.reference.resolved if message.reference and not is_known_reply else None
    attachments = message.attachments
    if isinstance(quoted, discord.Message):
        name, text = f"earlier message of {printable_name(quoted.author.name)}", words_in_message(quoted, me)
        earlier = (Attachment(name=name, text=text, size=len(text.encode())),) if text else ()
        attachments = [*attachments, *quoted.attachments]
    files: list[Part] = []
    notes: list[str] = []
    for at, file in enumerate(attachments):
        data, problem = (
            await _read_file(file) if at < MAX_MESSAGE_FILES else (b"", f"the limit is {MAX_MESSAGE_FILES} files")
        )
        problem = problem or attachment_problem(data)
        if not problem and picture_type(data) and sum(part["type"] == "image" for part in files) == MAX_PICTURES:
            problem = f"the limit is {MAX_PICTURES} images"
        if problem:
            notes.append(f"{printable_name(file.filename)} was left out: {problem}")
        else:
            files.append(message_part(file.filename, data))
    request = TurnRequest(
        origin="discord", person=str(message.author.id), switch_hints=_SWITCH_HINTS, is_new=True, attachments=earlier
    )
    words = words or (REQUEST_WITHOUT_TEXT if earlier or files else "Hello")
    return Say(words, request, files=tuple(files)), notes


async def _read_file(file: discord.Attachment) -> tuple[bytes, str]:
    limit = MAX_PICTURE_BYTES if (file.content_type or "").startswith("image/") else MAX_ATTACHED_TEXT_BYTES
    if file.size > limit:
        return b"", f"it has {file.size:,} bytes; the limit is {limit:,}"
    try:
        return await file.read(), ""
    except REQUEST_ERRORS as error:
        log.info("attachment %d cannot be read: %s", file.id, type(error).__name__)
        return b"", "it cannot be downloaded"


def uploadable_pictures(
    attachments: Iterable[ResultAttachment], results: ResultStore, session: str
) -> tuple[list[discord.File], list[str]]:
    """Return the stored images that have their declared type, and a note on each omitted attachment. Blocking."""
    pictures: list[discord.File] = []
    notes: list[str] = []
    for attachment in attachments:
        fits = attachment.size <= MAX_UPLOAD_BYTES and len(pictures) < MAX_UPLOADS
        data = stored_picture(attachment, results, session) if fits else None
        if data is None:
            notes.append(f"`{attachment.description.replace('`', ' ')}` is not shown here")
        else:
            name = f"image-{len(pictures) + 1}.{attachment.mime_type.removeprefix('image/')}"
            pictures.append(discord.File(io.BytesIO(data), name))
    return pictures, notes


def split_message(text: str, limit: int = MESSAGE_CHARS) -> list[str]:
    """Split a text at line ends into messages, and a long line between words. No message is blank.

    A code block is closed and opened again. As in Discord, three backticks open a block anywhere in a line, the next
    three close it, and it ends with its quote.
    """
    messages: list[str] = []
    current, opening, closing = "", "", ""
    longest, marks_left = limit - 2 * FENCE_CHARS - 3, text.count("```")
    pieces = re.compile(rf".{{1,{longest}}}(?:\s|$)|.{{{longest}}}")
    for line in text.split("\n"):
        quote = _QUOTE.findall(line)[0]  # it may be empty
        if opening and ">" in closing and ">" not in quote:
            current, opening = f"{current}\n{closing}", ""
        for part in pieces.findall(line) or [""]:
            if len(current) + len(part) + FENCE_CHARS > limit:
                messages.append(f"{current}\n{closing}" if opening else current)
                current = f"{opening}\n{part}" if opening else part
            else:
                current = f"{current}\n{part}" if current or messages else part
            for mark in re.finditer("```", part):
                marks_left -= 1
                is_text = not marks_left and part[: mark.start()].strip(" >")  # nothing closes it
                language = _LANGUAGE.fullmatch(part, mark.end())
                closing = f"{quote}```"
                opening = "" if opening or is_text else closing + (language[1] if language else "")
    messages.append(f"{current}\n{closing}" if opening else current)
    return [message for message in messages if message.strip()]


def code_block(text: str) -> str:
    """Return text as a code block that the text cannot close."""
    harmless = text.replace("```", "`\u200b`\u200b`")
    return f"```\n{harmless}\n```"


@dataclass
class DiscordTurn:
    """A turn: who asked, with which rights, and the message whose replies are its answer or question."""

    session: str
    asker: int
    rights: RoutingContext
    to: discord.Message
    points: Points
    point: Point | None = None
    """The point from which a reply to the next message continues."""
    notes: list[str] = field(default_factory=list)
    """Notes shown above the answer."""
    is_over: bool = False
    """Whether the answer or a question was sent or is being sent."""

    async def end(self, answer: str) -> None:
        """Send the notes and the answer, continued in further messages if the answer is long."""
        first, *more = split_message("\n".join([*(f"-# {note}" for note in self.notes), answer]))
        await self.send(first, suppress_embeds=True)
        for text in more:
            await self._post(content=text, suppress_embeds=True)

    async def attach(self, files: Iterable[discord.File]) -> None:
        """Send files below the answer, one per message, so that a refused file does not affect the others."""
        for file in files:
            try:
                await self._post(file=file)
            except REQUEST_ERRORS as error:
                log.warning("an image cannot be sent: %s", type(error).__name__)

    async def send(self, content: str, **parts: Any) -> discord.Message:
        """Send an answer or a question as a reply, and return it."""
        self.is_over = True
        return await self._post(content=content, reference=self.to.to_reference(fail_if_not_exists=False), **parts)

    async def _post(self, **parts: Any) -> discord.Message:
        async with self.points.sending(self.to.channel):
            if self.point is not None:  # recorded first, so that nothing is lost if the bot is stopped now
                keys = [f"question {self.point.channel}"] if "view" in parts else []
                await self.points.record(self.point, self.to.id, f"last {self.point.channel}", *keys)
            sent = await self.to.channel.send(**parts)
            if self.point is not None:
                await self.points.record(self.point, sent.id)
        return sent
