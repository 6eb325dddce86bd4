"""Claims that hold across processes, machines and histories: a row each in the database that keeps the sessions.

A LangGraph server keeps its sessions itself, and its store cannot insert a row once. There the claims are in the
database of Packetgate's own settings, which several such servers must share.
"""

import asyncio
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from graph.private import private_file
from graph.settings import Settings
from graph.storage import reached_postgres
from state.errors import ConfigError
from tools.execution.claims import Claim

_TABLE = "CREATE TABLE IF NOT EXISTS claims (key TEXT PRIMARY KEY)"
PATIENCE_S = 60.0
"""Longest wait for another process that writes."""


def claims_in(settings: Settings) -> Claim:
    """Return the claims of the database that the settings name. It is opened for each: approvals are rare."""
    url, path = settings.database_url, settings.database

    async def claim(key: str) -> bool:
        return await _in_postgres(url, key) if url else await asyncio.to_thread(_in_sqlite, path, key)

    return claim


def _in_sqlite(path: Path, key: str) -> bool:
    try:
        private_file(path)
        with closing(sqlite3.connect(path, timeout=PATIENCE_S)) as connection, connection:
            connection.execute(_TABLE)
            return connection.execute("INSERT OR IGNORE INTO claims VALUES (?)", (key,)).rowcount == 1
    except (OSError, sqlite3.Error) as error:
        raise ConfigError(f"{path}: cannot keep what was approved: {error}; set PACKETGATE_HOME") from error


async def _in_postgres(url: str, key: str) -> bool:
    with reached_postgres(url):
        from psycopg import AsyncConnection
        from psycopg.errors import UniqueViolation

        async with await AsyncConnection.connect(url, autocommit=True) as connection:
            with suppress(UniqueViolation):  # of processes that make the table at once
                await connection.execute(_TABLE)
            done = await connection.execute("INSERT INTO claims VALUES (%s) ON CONFLICT DO NOTHING", (key,))
            return done.rowcount == 1
