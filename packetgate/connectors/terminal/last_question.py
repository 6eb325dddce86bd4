"""Remember the question that a session showed last: words such as `yes` answer only that question."""

from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from packetgate.connectors.sessions import Sessions
from packetgate.graph.settings import Settings
from packetgate.state.errors import InputError

MAX_SESSIONS = 50
"""Maximum number of sessions whose last question is remembered."""


class LastQuestion:
    """The last shown question of each session, kept in files for the next command's process."""

    def __init__(self, settings: Settings) -> None:
        self._scope = settings.database_url or ""
        self._folder = settings.home / "shown"

    def question_id(self, session: str) -> str:
        """Return the id of the last shown question; empty if there is no shown question."""
        file = self._file(session)
        return file.read_text().partition("\n")[0] if file.is_file() else ""

    def sessions(self) -> list[str]:
        """Return the sessions whose question was shown here, the latest first."""
        names = {file: file.read_text().partition("\n")[2] for file in self._files()}
        return [session for file, session in names.items() if self._file(session) == file]

    def remember(self, session: str, question_id: str) -> None:
        """Remember the question that is shown now, and delete the oldest entries."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._file(session).write_text(f"{question_id}\n{session}")
        with suppress(OSError):  # another process may delete the same files
            for old in self._files()[MAX_SESSIONS:]:
                old.unlink()

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob("*"), key=lambda file: file.stat().st_mtime, reverse=True)

    def _file(self, session: str) -> Path:
        return self._folder / sha256(f"{self._scope}\n{session}".encode()).hexdigest()[:32]


async def only_open_session(sessions: Sessions, shown: LastQuestion) -> str:
    """Return the only session whose question was shown here and is still open.

    Raises:
        InputError: no such question is open, or more than one.
    """
    waiting = [name for name in shown.sessions() if (await sessions.state(name)).question is not None]
    if len(waiting) == 1:
        return waiting[0]
    reason = f"these wait: {', '.join(waiting)}" if waiting else "no question that was shown here is open"
    raise InputError(f"{reason}; name the session: packetgate answer yes --session NAME")
