"""The journal that the settings name: in SQLite, or in PostgreSQL when a URL is given."""

from pathlib import Path

from packetgate.graph.journal.postgres import PostgresJournal
from packetgate.graph.journal.sqlite import SqliteJournal
from packetgate.graph.journal.table import DatabaseJournal
from packetgate.graph.settings import Settings


def journal_in(settings: Settings, patience_s: float | None = None) -> DatabaseJournal:
    """Return the journal of the database that the settings name; it waits so long for another that writes to SQLite."""
    return journal_at(settings.database_url or settings.database, patience_s)


def journal_at(place: str | Path, patience_s: float | None = None) -> DatabaseJournal:
    """Return the journal in a database: a PostgreSQL URL, or the path of a SQLite file."""
    is_url = isinstance(place, str) and "://" in place
    return PostgresJournal(str(place)) if is_url else SqliteJournal(Path(place), patience_s)
