"""Kept results that the machines on one database share: kept there, and in files of whichever machine reads them."""

import logging
from pathlib import Path

from packetgate.graph.postgres import reached_postgres
from packetgate.graph.settings import Settings
from packetgate.tools.text.result_store import MAX_RESULTS, RESULT_AGE_S, ResultStore

log = logging.getLogger(__name__)

MOST_BYTES = 1_000_000_000
"""Of all sessions together, on all machines."""

_TABLE = """
SELECT pg_advisory_xact_lock(7326451905);
CREATE TABLE IF NOT EXISTS kept_results (
    session TEXT NOT NULL, handle TEXT NOT NULL, at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    content BYTEA NOT NULL, PRIMARY KEY (session, handle)
);
CREATE INDEX IF NOT EXISTS kept_results_at ON kept_results (at);
"""
_KEEP = "INSERT INTO kept_results (session, handle, content) VALUES (%s, %s, %s)"
_PRUNE = """
DELETE FROM kept_results WHERE at < now() - make_interval(secs => %s) OR session = %s AND handle IN (
    SELECT handle FROM kept_results WHERE session = %s ORDER BY at DESC OFFSET %s
) OR (session, handle) IN (
    SELECT session, handle FROM (
        SELECT session, handle, sum(octet_length(content)) OVER (ORDER BY at DESC, handle) AS together FROM kept_results
    ) AS newest WHERE together > %s
)
"""
_READ = "SELECT content FROM kept_results WHERE session = %s AND handle = %s"


class SharedResults(ResultStore):
    """Over a connection for each use, as every method blocks; what is too long to show is rare."""

    def __init__(self, folder: Path, url: str) -> None:
        super().__init__(folder)
        self._url = url

    def _write(self, file: Path, content: bytes) -> bool:
        """Write a result here, and into the database. Where that fails, it can at least be read here."""
        if not super()._write(file, content):
            return False
        with reached_postgres(self._url) as url:
            import psycopg

            session, handle = file.parent.name, file.name
            try:
                with psycopg.connect(url, autocommit=True) as connection:
                    try:
                        connection.execute(_KEEP, (session, handle, content))
                    except psycopg.errors.UndefinedTable:
                        connection.execute(_TABLE)
                        connection.execute(_KEEP, (session, handle, content))
                    connection.execute(_PRUNE, (RESULT_AGE_S, session, session, MAX_RESULTS, MOST_BYTES))
            except psycopg.Error as error:
                log.warning("kept:%s can be read on this machine alone: %s", handle, error)
        return True

    def _is_here(self, file: Path) -> bool:
        """Whether a result is here, or can be fetched."""
        if super()._is_here(file):
            return True
        with reached_postgres(self._url) as url:
            import psycopg

            try:
                with psycopg.connect(url) as connection:
                    found = connection.execute(_READ, (file.parent.name, file.name), binary=True).fetchone()
            except psycopg.errors.UndefinedTable:
                found = None
        return found is not None and super()._write(file, found[0])


def kept_in(settings: Settings) -> ResultStore:
    """Return what is kept where the settings say."""
    if settings.database_url:
        return SharedResults(settings.kept_path, settings.database_url)
    return ResultStore(settings.kept_path)
