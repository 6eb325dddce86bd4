"""Remember the question that a session showed last: words such as `yes` answer only that one."""

from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from time import time

from packetgate.connectors.sessions import Sessions
from packetgate.graph.settings import Settings
from packetgate.state.errors import InputError

MAX_AGE_S = 30 * 86_400.0
"""Seconds after which a remembered question is deleted."""
LOOKED_AT, NAMED = 50, 5
"""Most sessions searched for an open question, and most that a message names."""


class LastQuestion:
    """The last shown question of each session, kept in files for the next command's process."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def of(self, session: str) -> str:
        """Return the id of the last shown question; empty if there is none."""
        return self._read(self._file(session))[0]

    def sessions(self) -> list[str]:
        """Return the sessions that showed a question, the latest first."""
        files = [*self._folder.iterdir()] if self._folder.is_dir() else []
        names = {name: file for file in files if (name := self._read(file)[1]) and self._file(name) == file}
        return sorted(names, key=lambda name: names[name].stat().st_mtime, reverse=True)

    def remember(self, session: str, question_id: str) -> None:
        """Remember the question that is shown now, and delete old entries."""
        file = self._file(session)
        file.parent.mkdir(parents=True, exist_ok=True)
        for old in file.parent.iterdir():
            with suppress(OSError):
                if time() - old.stat().st_mtime > MAX_AGE_S:
                    old.unlink()
        file.write_text(f"{question_id}\n{session}")

    @staticmethod
    def _read(file: Path) -> tuple[str, str]:
        question_id, _, session = file.read_text().partition("\n") if file.is_file() else ("", "", "")
        return question_id, session

    @property
    def _folder(self) -> Path:
        return self._settings.home / "shown"

    def _file(self, session: str) -> Path:
        where = f"{self._settings.url or self._settings.database_url or ''}\n{session}"
        return self._folder / sha256(where.encode()).hexdigest()[:32]


async def only_open(sessions: Sessions, shown: LastQuestion) -> str:
    """Return the only session whose question was shown here and is still open.

    Raises:
        InputError: there is none, or more than one.
    """
    found = [name for name in shown.sessions()[:LOOKED_AT] if (await sessions.state(name)).question is not None]
    if len(found) == 1:
        return found[0]
    named = f"these wait: {', '.join(found[:NAMED])}" if found else "no question that was shown here is open"
    raise InputError(f"{named}; name the session: packetgate answer yes --session NAME")
