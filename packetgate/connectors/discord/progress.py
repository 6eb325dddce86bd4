"""One message that follows a turn: edited as it goes on, and in the end the answer stands in it."""

import asyncio
import logging
from typing import Any

import discord

from packetgate.connectors.discord.errors import UNSENT
from packetgate.connectors.discord.splitting import split

log = logging.getLogger(__name__)

PAUSE_S = 1.2
"""Seconds between two edits: Discord allows about five in five seconds, and more than one message may be edited."""

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
"""What a stage does, in a user's words."""


class LiveMessage:
    """A reply that is edited, at most every `pause_s` seconds: of what comes in between, the newest is shown."""

    def __init__(self, to: discord.Message | discord.PartialMessage, pause_s: float = PAUSE_S) -> None:
        self.notes: list[str] = []
        """What the user is to know besides the answer."""
        self.is_over = False
        """Whether an answer or a question stands there, or is on its way."""
        self._to = to
        self._pause_s = pause_s
        self._sent: discord.Message | None = None
        self._text = ""
        self._changed = asyncio.Event()
        self._editing = asyncio.Lock()
        self._following: asyncio.Task[None] | None = None

    @property
    def channel(self) -> discord.abc.Messageable:
        """Where it stands."""
        return self._to.channel

    async def show(self, stage: str) -> None:
        """Say that a stage has begun."""
        self._text = f"*{STAGES.get(stage, stage)} …*"
        if self._sent is not None:
            self._changed.set()
            return
        sent = await self.place()
        self._following = asyncio.create_task(self._follow(sent))

    async def place(self) -> discord.Message:
        """Return the message, sent if it was not yet."""
        if self._sent is None:
            self._sent = await self._send(self._text or "…", suppress_embeds=True)
        return self._sent

    def begin_anew(self) -> None:
        """Leave what stands there: what comes next goes into a message of its own."""
        self.notes, self.is_over, self._sent, self._following = [], False, None, None

    async def end(self, answer: str) -> None:
        """Put the answer in its place, below the notes; what does not fit in one message follows in more."""
        notes = [f"-# {note}" for note in self.notes]
        first, *more = split("\n".join([*notes, answer]))
        await self._finally(content=first, suppress=True)
        for text in more:
            await self.channel.send(text, suppress_embeds=True)

    async def attach(self, files: list[discord.File]) -> None:
        """Send files below the answer, each in a message of its own: one that is refused takes nothing with it."""
        for file in files:
            try:
                await self.channel.send(file=file)
            except UNSENT as error:
                log.warning("a picture cannot be sent: %s", type(error).__name__)

    async def ask(self, content: str, view: discord.ui.View, **parts: Any) -> discord.Message:
        """Put a question in its place, with what goes with it, and return it."""
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
