"""`packetgate doctor`: what is configured, what answers, what is missing and how to mend it."""

import platform
import shutil
import sqlite3
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from packetgate.connectors.opening import open_sessions
from packetgate.connectors.options import run_settings_from
from packetgate.connectors.terminal.findings import Finding, exit_status, show, show_json
from packetgate.connectors.terminal.listing import unfitting
from packetgate.graph.composition import open_tools, sandbox_settings
from packetgate.graph.pool import model_pool
from packetgate.graph.records.passports import read_passport
from packetgate.graph.records.passports import version as version_of_cases
from packetgate.graph.settings import Settings
from packetgate.graph.storage import open_checkpointer, open_store
from packetgate.state.context import RoutingContext
from packetgate.state.errors import ConfigError, PacketgateError
from packetgate.state.printing import counted
from packetgate.state.sections import ServerHealth
from packetgate.tools.builtin.failures import ToolFailure
from packetgate.tools.builtin.sandbox import Sandbox
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.preferences import Preferences, load_preferences, read_file
from packetgate.tools.risk.vouching import unvouched_line
from packetgate.tools.servers.config import McpConfig, Remark, load_config

PACKAGES = ("langgraph", "langchain-core", "fastmcp", "mcp", "pydantic")


async def run_doctor(settings: Settings, *, models: bool, as_json: bool) -> int:
    """Print every finding, each model's own if `models`; the exit status is 0 if none of them is bad."""
    tools, catalogue = await _tools(settings)
    run_settings, context = _run_settings(settings)
    findings = [
        *await _server_of_turns(settings),
        *await _process(settings),
        *(one for one in run_settings if one not in tools),
        *([] if models else await _models(settings)),
        *await _evaluated(settings),
        *tools,
    ]
    if not as_json:
        show(findings)
    if models:
        from packetgate.connectors.terminal.probing import probed

        async for found in probed(settings, catalogue, context):
            if not as_json:
                show(found)
            findings += found
    if as_json:
        show_json(findings)
    return exit_status(findings)


async def _server_of_turns(settings: Settings) -> list[Finding]:
    if not settings.url:
        return []
    try:
        async with open_sessions(settings):
            how = f"{settings.url} runs the turns, by its assistant {settings.assistant}; below is what is here"
            return [Finding("ok", "PACKETGATE_URL", how)]
    except PacketgateError as error:
        return [Finding("bad", "PACKETGATE_URL", str(error))]


async def _process(settings: Settings) -> list[Finding]:
    return [
        Finding("ok", "python", f"{platform.python_version()}, packetgate {version('packetgate')}"),
        Finding("ok", "packages", ", ".join(f"{name} {version(name)}" for name in PACKAGES)),
        _full_text_search(),
        await _sessions(settings),
        *_serve(settings.preferences_path),
    ]


def _run_settings(settings: Settings) -> tuple[list[Finding], RoutingContext]:
    """Return what is found of the settings of runs, and what holds; where they cannot be used, the defaults."""
    try:
        found = run_settings_from(settings)
    except ConfigError as error:
        return [Finding("bad", "preferences", str(error))], RoutingContext()
    how = f"{len(found.sources)} of {len(RoutingContext.model_fields)} set; `packetgate settings` shows from where"
    return [Finding("ok", "settings", how)] if found.sources else [], found.context


def _serve(path: Path | None) -> list[Finding]:
    """Return what `packetgate serve` does with a client's tools; a file that cannot be read is told elsewhere."""
    try:
        table = read_file(path).get("serve", {}) if path else {}
    except ConfigError:
        return []
    strict = isinstance(table, dict) and table.get("strict") is True
    how = "refused" if strict else "ignored (strict = true under [serve] in packetgate.toml refuses them)"
    return [Finding("ok", "serve", f"tools that a chat client sends are {how}; only those of mcp.json run")]


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


async def _models(settings: Settings) -> list[Finding]:
    try:
        models = model_pool(settings)
        await models.check()
    except PacketgateError as error:
        return [Finding("bad", "models", str(error))]
    found = [Finding("ok", ", ".join(roles), models.describe(roles[0])) for roles in models.players]
    if settings.lite == settings.prime == "reflex":
        how = "no language model: requests are routed by words alone. `packetgate init` looks for one"
        return [*found, Finding("note", "models", how)]
    return found


async def _evaluated(settings: Settings) -> list[Finding]:
    """Return what is known of the model by its cases, where one model decides."""
    try:
        known_as = await model_pool(settings).known_as()
        if known_as is None:
            return []
        async with open_store(settings) as store:
            kept = await read_passport(store, known_as)
    except (PacketgateError, OSError):
        return []  # told where models and sessions are
    if kept is None:
        return [Finding("note", "evaluated", "not yet: `packetgate evaluate` tries the model on eighty cases")]
    if kept.version != version_of_cases():
        return [Finding("note", "evaluated", "by an earlier Packetgate: `packetgate evaluate` tries the model anew")]
    right, seconds = kept.figures().right, kept.mean("seconds")
    told = f"{right} of {kept.of} cases right, {kept.believed}; {seconds:.1f} s a turn"
    return [
        Finding("ok", "evaluated", f"{told}; on {kept.at.astimezone():%Y-%m-%d}{'' if kept.curves else '; no curve'}")
    ]


async def _tools(settings: Settings) -> tuple[list[Finding], Catalogue]:
    """Return what is found of the servers and the preferences, and the tools that there are."""
    unusable = [
        *_unusable("servers", load_config, settings.config_path),
        *_unusable("preferences", load_preferences, settings.preferences_path),
    ]
    if unusable:
        return unusable, Catalogue()
    try:
        config = load_config(settings.config_path, settings.root)
        async with open_tools(settings) as hub:
            catalogue = await hub.catalogue()
            health, notes = hub.health(), hub.notes()
    except PacketgateError as error:
        return [Finding("bad", "servers", str(error))], Catalogue()
    sandbox = [await _sandbox(settings, catalogue.preferences)] if "ai.execute" in catalogue else []
    where = f"{len(health)} from {config.source}; files below {settings.root.resolve()}; logs in {settings.logs_path}"
    servers = [Finding("ok", "servers", where), *map(_remark, config.remarks)]
    for one in health:
        servers += [_server(one, config), *(Finding("note", f"  {one.name}", line) for line in notes.get(one.name, ()))]
    servers += _unvouched(catalogue)
    return [*servers, *sandbox, *_preferences(settings.preferences_path, catalogue)], catalogue


async def _sandbox(settings: Settings, preferences: Preferences) -> Finding:
    """Return what programs of `ai.execute` are kept from, as a trial of it showed."""
    sandbox = Sandbox(sandbox_settings(preferences, settings))
    try:
        folder = settings.root.resolve()
        kept, confines = await sandbox.said(folder), (await sandbox.rung(folder)).keeps_files
    except ToolFailure as error:
        return Finding("bad", "sandbox", str(error))
    advice = "" if confines or sandbox.settings.mode == "off" else "; install bubblewrap, or a kernel with Landlock"
    return Finding("ok" if confines else "note", "sandbox", f"{kept}{advice}")


def _unusable(what: str, load: Callable[[Path | None], object], path: Path | None) -> list[Finding]:
    try:
        load(path)
    except ConfigError as error:
        return [Finding("bad", what, str(error))]
    return []


def _preferences(path: Path | None, catalogue: Catalogue) -> list[Finding]:
    if path is None:
        return []
    said = catalogue.preferences
    holds = f"{path}: permanent {len(said.permanent)}, pools {len(said.pools)}, tools {len(said.tools)}"
    policy = f"{counted(len(said.policy.rules), 'rule')}, remember = {said.policy.remember}"
    return [
        Finding("ok", "preferences", holds),
        Finding("ok", "policy", policy),
        *(Finding("note", "preferences", line) for line in unfitting(catalogue, path)),
    ]


def _remark(remark: Remark) -> Finding:
    return Finding("bad" if remark.kind == "left out" else "note", "mcp.json", str(remark))


def _server(server: ServerHealth, config: McpConfig) -> Finding:
    if server.state == "ready":
        return Finding("note" if server.problem else "ok", server.name, server.problem or counted(server.tools, "tool"))
    return Finding("bad", server.name, f"{server.problem or 'still starting'}{_advice(config, server.name)}")


def _unvouched(catalogue: Catalogue) -> list[Finding]:
    """Return a line for each server with tools that count as more than a read only because nothing vouches for them."""
    held = [spec for spec in catalogue.values() if spec.unvouched]
    return [
        Finding("note", server, unvouched_line([spec for spec in held if spec.server == server]))
        for server in dict.fromkeys(spec.server for spec in held)
    ]


def _advice(config: McpConfig, name: str) -> str:
    entry = next((server.entry for server in config.servers if server.name == name), {})
    command = entry.get("command")
    if isinstance(command, str) and "${" not in command and shutil.which(command) is None:
        return f"; the program {command!r} is not installed, or not on PATH"
    return ""
