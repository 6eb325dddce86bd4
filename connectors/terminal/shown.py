"""Which question of a session was last shown here: words such as `yes` are an answer to that one, and to no other."""

from hashlib import sha256
from pathlib import Path

from graph.settings import Settings


class Shown:
    """What was last shown of each session, kept in files: the next command is another process."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def of(self, session: str) -> str:
        """Return the id of the question; empty where none was shown."""
        file = self._file(session)
        return file.read_text() if file.is_file() else ""

    def remember(self, session: str, question_id: str) -> None:
        """Keep which question is shown now."""
        file = self._file(session)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(question_id)

    def _file(self, session: str) -> Path:
        where = f"{self._settings.url or self._settings.database_url or ''}\n{session}"
        return self._settings.home / "shown" / sha256(where.encode()).hexdigest()[:32]
