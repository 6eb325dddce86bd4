"""Which question of a session was last shown here: words such as `yes` are an answer to that one, and to no other."""

from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from time import time

from graph.settings import Settings

MAX_AGE_S = 30 * 86_400.0
"""A question lapses after a day."""


class Shown:
    """What was last shown of each session, kept in files: the next command is another process."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def of(self, session: str) -> str:
        """Return the id of the question; empty where none was shown."""
        file = self._file(session)
        return file.read_text() if file.is_file() else ""

    def remember(self, session: str, question_id: str) -> None:
        """Keep which question is shown now; what nobody has looked at for long is removed."""
        file = self._file(session)
        file.parent.mkdir(parents=True, exist_ok=True)
        for old in file.parent.iterdir():
            with suppress(OSError):
                if time() - old.stat().st_mtime > MAX_AGE_S:
                    old.unlink()
        file.write_text(question_id)

    def _file(self, session: str) -> Path:
        where = f"{self._settings.url or self._settings.database_url or ''}\n{session}"
        return self._settings.home / "shown" / sha256(where.encode()).hexdigest()[:32]
