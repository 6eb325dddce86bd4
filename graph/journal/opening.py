"""The journal that the settings name: in SQLite, or in PostgreSQL when a URL is given."""

from graph.journal.postgres import PostgresJournal
from graph.journal.sqlite import SqliteJournal
from graph.journal.table import DatabaseJournal
from graph.settings import Settings


def journal_in(settings: Settings) -> DatabaseJournal:
    """Return the journal of the database that the settings name."""
    return PostgresJournal(settings.database_url) if settings.database_url else SqliteJournal(settings.database)
