"""`packetgate doctor`: what is configured, what answers, what is missing and how to mend it."""

import platform
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Literal

from rich.table import Table
from rich.text import Text

from connectors.terminal import rendering
from graph.composition import open_tools
from graph.settings import Settings
from graph.storage import open_checkpointer
from models.pool import ModelPool
from state.errors import PacketgateError
from tools.config import McpConfig, load_config

STYLE = {"ok": "green", "note": "yellow", "bad": "red"}
PACKAGES = ("langgraph", "langchain-core", "fastmcp", "mcp", "pydantic")


@dataclass(frozen=True)
class Finding:
    """One thing looked at."""

    verdict: Literal["ok", "note", "bad"]
    what: str
    how: str


async def examine(settings: Callable[[], Settings]) -> int:
    """Print every finding; the exit status is 1 if one of them is bad."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold", ratio=1)
    bad = False
    async for finding in _findings(settings()):
        bad = bad or finding.verdict == "bad"
        table.add_row(
            Text(finding.verdict, style=STYLE[finding.verdict]), finding.what, Text(rendering.printable(finding.how))
        )
    rendering.console().print(table)
    return 1 if bad else 0


async def _findings(settings: Settings) -> AsyncIterator[Finding]:
    yield Finding("ok", "python", f"{platform.python_version()}, packetgate {version('packetgate')}")
    yield Finding("ok", "packages", ", ".join(f"{name} {version(name)}" for name in PACKAGES))
    yield _full_text_search()
    yield await _sessions(settings)
    async for finding in _models(settings):
        yield finding
    async for finding in _tools(settings):
        yield finding


def _full_text_search() -> Finding:
    try:
        with sqlite3.connect(":memory:") as database:
            database.execute("CREATE VIRTUAL TABLE probe USING fts5(text)")
    except sqlite3.OperationalError as error:
        return Finding(
            "bad", "search", f"this Python's SQLite has no FTS5 ({error}): use a Python from python.org or uv"
        )
    return Finding("ok", "search", f"SQLite {sqlite3.sqlite_version} with full-text search")


async def _sessions(settings: Settings) -> Finding:
    where = "PostgreSQL" if settings.database_url else str(settings.database)
    try:
        async with open_checkpointer(settings):
            return Finding("ok", "sessions", where)
    except PacketgateError as error:
        return Finding("bad", "sessions", str(error))


async def _models(settings: Settings) -> AsyncIterator[Finding]:
    try:
        models = ModelPool(settings.lite, settings.prime)
        await models.check()
    except PacketgateError as error:
        yield Finding("bad", "models", str(error))
        return
    for role in ("lite", "prime"):
        yield Finding("ok", role, models.describe(role))
    if settings.lite == settings.prime == "reflex":
        yield Finding(
            "note", "models", "no language model: requests are routed by words alone. Set --lite and --prime to add one"
        )


async def _tools(settings: Settings) -> AsyncIterator[Finding]:
    try:
        config = load_config(settings.config_path)
        async with open_tools(settings) as hub:
            await hub.catalogue()
            health = hub.health()
    except PacketgateError as error:
        yield Finding("bad", "servers", str(error))
        return
    yield Finding("ok", "servers", f"{len(health)} from {config.source}; files below {settings.root.resolve()}")
    for server in health:
        if server.state == "ready":
            yield Finding("note" if server.problem else "ok", server.name, server.problem or f"{server.tools} tools")
        else:
            yield Finding("bad", server.name, f"{server.problem or 'still starting'}{_advice(config, server.name)}")


def _advice(config: McpConfig, name: str) -> str:
    entry = next((server.entry for server in config.servers if server.name == name), {})
    command = entry.get("command")
    if isinstance(command, str) and shutil.which(command) is None:
        return f"; the program {command!r} is not installed, or not on PATH"
    return ""
