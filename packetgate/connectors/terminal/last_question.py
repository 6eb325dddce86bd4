"""Remember the question that a session showed last: words such as `yes` answer only that question."""

from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from time import time

from packetgate.connectors.sessions import Sessions
from packetgate.graph.settings import Settings
from packetgate.state.errors import InputError

MAX_AGE_S = 30 * 86_400.0
"""Seconds after which a remembered question is deleted."""
_MAX_SESSIONS = 50
"""Maximum number of sessions that are searched for an open question."""


class LastQuestion:
    """The last shown question of each session, kept in files for the next command's process."""

    def __init__(self, settings: Settings) -> None:
        self._scope = settings.url or settings.database_url or ""
        self._folder = settings.home / "shown"

    def question_id(self, session: str) -> str:
        """Return the id of the last shown question; empty if there is no shown question."""
        return _read(self._file(session))[0]

    def sessions(self) -> list[str]:
        """Return the sessions whose question was shown here, the latest first."""
        files = sorted(self._folder.glob("*"), key=lambda file: file.stat().st_mtime, reverse=True)
        return [session for file in files if (session := _read(file)[1]) and self._file(session) == file]

    def remember(self, session: str, question_id: str) -> None:
        """Remember the question that is shown now, and delete old entries."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for old in self._folder.iterdir():
            with suppress(OSError):
                if time() - old.stat().st_mtime > MAX_AGE_S:
                    old.unlink()
        self._file(session).write_text(f"{question_id}\n{session}")

    def _file(self, session: str) -> Path:
        return self._folder / sha256(f"{self._scope}\n{session}".encode()).hexdigest()[:32]


def _read(file: Path) -> tuple[str, str]:
    question_id, _, session = file.read_text().partition("\n") if file.is_file() else ("", "", "")
    return question_id, session


async def only_open(sessions: Sessions, shown: LastQuestion) -> str:
    """Return the only session whose question was shown here and is still open.

    Raises:
        InputError: no such question is open, or more than one.
    """
    names = shown.sessions()[:_MAX_SESSIONS]
    waiting = [name for name in names if (await sessions.state(name)).question is not None]
    if len(waiting) == 1:
        return waiting[0]
    reason = f"these wait: {', '.join(waiting)}" if waiting else "no question that was shown here is open"
    raise InputError(f"{reason}; name the session: packetgate answer yes --session NAME")
