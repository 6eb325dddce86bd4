"""The questions that wait for an answer: known again after a restart, and seen to lapse."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import AwareDatetime, TypeAdapter, ValidationError

from packetgate.graph.private import private_file
from packetgate.state.base import Section, now
from packetgate.state.errors import ConfigError

log = logging.getLogger(__name__)

Mark = Callable[["OpenQuestion", str], Awaitable[None]]
"""What takes the buttons from a question's message, and says there what became of it."""

LAPSED = "⌛ This lapsed unanswered: nothing was run."


class OpenQuestion(Section):
    """A question that was put, and where."""

    session: str
    channel: int
    message: int
    asker: int
    key: str
    expires_at: AwareDatetime | None = None

    @property
    def has_lapsed(self) -> bool:
        """Whether it is too late to answer."""
        return self.expires_at is not None and now() > self.expires_at


_OPEN = TypeAdapter(list[OpenQuestion])


def expiry_of(question: Mapping[str, Any]) -> datetime | None:
    """Return when a question lapses, None where it never does."""
    written = question.get("expires_at")
    return datetime.fromisoformat(written) if isinstance(written, str) else None


class OpenQuestions:
    """At most one question a session, kept in a file that only the bot writes."""

    def __init__(self, file: Path, mark: Mark) -> None:
        self._file = file
        self._mark = mark
        self._open: dict[str, OpenQuestion] = {}
        self._timers: dict[str, asyncio.Task[None]] = {}
        self._writing = asyncio.Lock()

    async def load(self) -> None:
        """Take up the questions that were open when the bot was last stopped.

        Raises:
            ConfigError: the file cannot be read.
        """
        try:
            kept = _OPEN.validate_json(await asyncio.to_thread(self._file.read_bytes))
        except FileNotFoundError:
            return
        except (OSError, ValidationError) as error:
            raise ConfigError(f"{self._file}: cannot be read: delete it; buttons still work without it") from error
        for question in kept:
            self._watch(question)

    def of(self, session: str) -> OpenQuestion | None:
        """Return a session's open question."""
        return self._open.get(session)

    async def add(self, question: OpenQuestion) -> None:
        """Keep a question until it is answered or lapses."""
        self._watch(question)
        await self._save()

    async def remove(self, session: str) -> None:
        """Forget a session's question."""
        self._unwatch(session)
        if self._open.pop(session, None) is not None:
            await self._save()

    async def close(self, session: str, line: str) -> None:
        """Let a session's question, where it has one, stand without buttons under a line, and forget it."""
        question = self._open.get(session)
        if question is not None:
            self._unwatch(session)
            await self._mark(question, line)  # before it is forgotten: a bot that is stopped in between does it again
            await self.remove(session)

    def stop(self) -> None:
        """Stop watching; what is open stays in the file."""
        for timer in self._timers.values():
            timer.cancel()

    def _watch(self, question: OpenQuestion) -> None:
        self._unwatch(question.session)
        self._open[question.session] = question
        if question.expires_at is not None:
            self._timers[question.session] = asyncio.create_task(self._lapse(question, question.expires_at))

    def _unwatch(self, session: str) -> None:
        timer = self._timers.pop(session, None)
        if timer is not None and timer is not asyncio.current_task():
            timer.cancel()

    async def _lapse(self, question: OpenQuestion, expires_at: datetime) -> None:
        await asyncio.sleep(max(0.0, (expires_at - now()).total_seconds()))
        await self.close(question.session, LAPSED)

    async def _save(self) -> None:
        async with self._writing:
            await asyncio.to_thread(self._write, _OPEN.dump_json(list(self._open.values())))

    def _write(self, data: bytes) -> None:
        new = self._file.with_suffix(".new")
        private_file(new)
        new.write_bytes(data)
        new.replace(self._file)
