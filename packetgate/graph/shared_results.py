"""Long results that several machines share in PostgreSQL; each machine also caches them in files."""

import logging
from pathlib import Path

from packetgate.graph.postgres import postgres_errors
from packetgate.graph.settings import Settings
from packetgate.tools.text.result_store import MAX_RESULTS, RESULT_AGE_S, ResultStore

MAX_SHARED_BYTES = 1_000_000_000
"""Limit for all sessions on all machines together."""

_CREATE = """
SELECT pg_advisory_xact_lock(7326451905);
CREATE TABLE IF NOT EXISTS kept_results (
    session TEXT NOT NULL, handle TEXT NOT NULL, at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    content BYTEA NOT NULL, PRIMARY KEY (session, handle)
);
CREATE INDEX IF NOT EXISTS kept_results_at ON kept_results (at);
"""
_WRITE = "INSERT INTO kept_results (session, handle, content) VALUES (%s, %s, %s)"
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


class SharedResultStore(ResultStore):
    """Uses a connection for each access: all methods block, and long results are rare."""

    def __init__(self, folder: Path, url: str) -> None:
        super().__init__(folder)
        self._url = url

    def _write(self, file: Path, content: bytes) -> bool:
        if not super()._write(file, content):
            return False
        with postgres_errors(self._url) as url:
            import psycopg

            session, handle = file.parent.name, file.name
            try:
                with psycopg.connect(url, autocommit=True) as connection:
                    connection.execute(_CREATE)
                    connection.execute(_WRITE, (session, handle, content))
                    connection.execute(_PRUNE, (RESULT_AGE_S, session, session, MAX_RESULTS, MAX_SHARED_BYTES))
            except psycopg.Error as error:
                logging.getLogger(__name__).warning("kept:%s can be read on this machine only: %s", handle, error)
        return True

    def _is_here(self, file: Path) -> bool:
        if super()._is_here(file):
            return True
        with postgres_errors(self._url) as url:
            import psycopg

            try:
                with psycopg.connect(url) as connection:
                    row = connection.execute(_READ, (file.parent.name, file.name), binary=True).fetchone()
            except psycopg.errors.UndefinedTable:
                row = None
        return row is not None and super()._write(file, row[0])


def result_store(settings: Settings) -> ResultStore:
    """Return the store of long results that the settings name."""
    if settings.database_url:
        return SharedResultStore(settings.results_path, settings.database_url)
    return ResultStore(settings.results_path)
