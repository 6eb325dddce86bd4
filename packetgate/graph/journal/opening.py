"""The journal that the settings name: in SQLite, or in PostgreSQL when a URL is given."""

from packetgate.graph.journal.postgres import PostgresJournal
from packetgate.graph.journal.sqlite import SqliteJournal
from packetgate.graph.journal.table import DatabaseJournal
from packetgate.graph.settings import Settings
from packetgate.graph.storage import PATIENCE_S


def journal_in(settings: Settings, patience_s: float = PATIENCE_S) -> DatabaseJournal:
    """Return the journal of the database that the settings name; it waits so long for another that writes to SQLite."""
    if settings.database_url:
        return PostgresJournal(settings.database_url)
    return SqliteJournal(settings.database, patience_s)
