"""`packetgate doctor`: check what is configured, what answers, and what is missing."""

import asyncio
import platform
import shutil
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator
from importlib.metadata import version
from typing import Literal, NamedTuple

import typer

from packetgate.connectors import rendering
from packetgate.connectors.options import AsJson, Lite, McpConfigPath, Prime, run_settings_from, settings_from
from packetgate.connectors.terminal.reports import unmatched_patterns, with_answers
from packetgate.graph.composition import model_pool, open_tools, sandbox_settings
from packetgate.graph.records import evidence_version
from packetgate.graph.settings import Settings
from packetgate.graph.storage import check_database, open_store
from packetgate.plugins import LEFT_OUT, installed
from packetgate.state.database_errors import UNDO_CONTENT, check_sqlite, database_problem
from packetgate.state.errors import PacketgateError
from packetgate.state.printing import counted
from packetgate.state.routing import Risk
from packetgate.state.sections import ServerHealth
from packetgate.tools.calibration import read_calibration
from packetgate.tools.catalogue.preferences import Preferences, load_preferences
from packetgate.tools.catalogue.rule_checks import rule_problems
from packetgate.tools.risk.registry import load_registry
from packetgate.tools.risk.tool import unconfirmed_reads_note
from packetgate.toolsets.builtin.files import ToolFailure
from packetgate.toolsets.builtin.sandbox import Sandbox
from packetgate.toolsets.servers.config import load_config
from packetgate.toolsets.servers.confined import sandbox_problem
from packetgate.toolsets.servers.oauth import login_states

PACKAGES = ("packetgate", "langgraph", "langchain-core", "fastmcp", "mcp", "pydantic")


class Finding(NamedTuple):
    """The result of a check."""

    verdict: Literal["ok", "note", "bad"]
    what: str
    how: str


async def doctor(
    mcp_config: McpConfigPath = None, lite: Lite = None, prime: Prime = None, as_json: AsJson = False
) -> int:
    """Check what is configured, what answers, and what is missing.

    Exit status 1 means that something is missing.
    """
    settings = settings_from(mcp_config=mcp_config, lite=lite, prime=prime)
    findings: list[Finding] = []
    with rendering.console(stderr=True).status("checking ..."):
        for check in CHECKS:
            try:
                async for finding in check(settings):
                    findings.append(finding)  # noqa: PERF401 - findings before an error count
            except PacketgateError as error:  # several checks may read the same unusable file
                finding = Finding("bad", check.__name__.removeprefix("_"), f"{error} [{error.code}]")
                if finding.how not in {earlier.how for earlier in findings}:
                    findings.append(finding)
    columns = {"verdict": "verdict", "what": "what", "how": "how"}
    rendering.print_rows([finding._asdict() for finding in findings], columns, as_json=as_json)
    return int(any(finding.verdict == "bad" for finding in findings))


async def _python(_settings: Settings) -> AsyncIterator[Finding]:
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    yield Finding("ok", "python", f"{platform.python_version()}, {packages}")


async def _sessions(settings: Settings) -> AsyncIterator[Finding]:
    if settings.undo_path.exists():
        try:
            await asyncio.to_thread(check_sqlite, settings.undo_path)
        except sqlite3.Error as error:
            yield Finding("bad", "undo", database_problem(settings.undo_path, error, UNDO_CONTENT))
    await check_database(settings)
    yield Finding("ok", "sessions", "PostgreSQL" if settings.database_url else str(settings.database))


async def _preferences(settings: Settings) -> AsyncIterator[Finding]:
    run_settings_from(settings)
    path = settings.preferences_path
    if path is not None:
        policy = load_preferences(path).policy
        rules = counted(len(policy.rules), "policy rule")
        yield Finding("ok", "preferences", f"{path}: {rules}, remember = {policy.remember}")


async def _models(settings: Settings) -> AsyncIterator[Finding]:
    models = model_pool(settings)
    await models.check()
    for roles in models.role_groups:
        yield Finding("ok", ", ".join(roles), models.describe(roles[0]))
    if settings.lite == settings.prime == "reflex":
        yield Finding("note", "models", "no language model; `packetgate init` looks for models")
    if model_digest := await models.model_digest():
        async with open_store(settings) as store:
            found = await read_calibration(store, model_digest)
        if found.version == evidence_version():
            yield Finding("ok", "evaluated", found.summary)
        else:
            state = "by another version" if found.version else "not yet"
            yield Finding("note", "evaluated", f"{state}: `packetgate evaluate` tries the model on eighty cases")


async def _plugins(settings: Settings) -> AsyncIterator[Finding]:
    plugins = installed()
    if plugins.by_name:
        yield Finding("ok", "plug-ins", ", ".join(plugins.by_name))
    for problem in (*plugins.problems, *plugins.wrong_parts()):
        yield Finding("note" if LEFT_OUT in problem else "bad", "plug-ins", problem)


async def _servers(settings: Settings) -> AsyncIterator[Finding]:
    config = load_config(settings.config_path, settings.root)
    sandbox = sandbox_settings(load_preferences(settings.preferences_path), settings)
    if problem := await asyncio.to_thread(sandbox_problem, sandbox):
        typer.echo(f"packetgate: {problem}", err=True)
    async with open_tools(settings) as hub:
        catalogue, health, notes, rights = (
            await hub.catalogue(wait_for_all=True),
            hub.health(),
            hub.tool_notes(),
            hub.rights(),
        )
    where = f"{len(health)} from {config.source}; files below {settings.root.resolve()}; logs in {settings.logs_path}"
    yield Finding("ok", "servers", where)
    for remark in config.remarks:
        yield Finding("bad" if remark.kind == "left out" else "note", "mcp.json", str(remark))
    commands = {server.name: server.entry.get("command") for server in config.servers}
    for server in health:
        yield _server(server, commands.get(server.name), rights.get(server.name, ""))
        for note in notes.get(server.name, ()):
            yield Finding("note", server.name, note)
    for state in await asyncio.to_thread(lambda: [*login_states(config.servers, settings.logins_path)]):
        yield Finding("ok" if state.is_usable else "note", state.server, state.text)
    yield Finding("ok", "registry", load_registry().description)
    if "ai.execute" in catalogue:
        yield await _sandbox(settings, catalogue.preferences)
    for line in unmatched_patterns(catalogue, settings.preferences_path):
        yield Finding("note", "preferences", line)
    for line in rule_problems(catalogue.preferences.policy.rules, catalogue):
        yield Finding("note", "policy", line)
    specs = await with_answers([*catalogue.values()], settings)  # last, because a damaged database ends the check
    sources = Counter(f"{spec.risk}, said by {spec.risk_source}" for spec in specs)
    if sources:
        yield Finding("ok", "risks", "; ".join(f"{name}: {count}" for name, count in sorted(sources.items())))
    unconfirmed_reads = [spec for spec in specs if spec.is_unconfirmed_read and spec.risk is not Risk.READ]
    for name in dict.fromkeys(spec.server for spec in unconfirmed_reads):
        yield Finding("note", name, unconfirmed_reads_note([spec for spec in unconfirmed_reads if spec.server == name]))


def _server(server: ServerHealth, command: object, rights: str) -> Finding:
    if server.state == "ready":
        text = "; ".join(filter(None, (server.problem or counted(server.tools, "tool"), rights)))
        return Finding("note" if server.problem else "ok", server.name, text)
    problem = server.problem or "still starting"
    if isinstance(command, str) and "${" not in command and shutil.which(command) is None:
        problem = f"{problem}; the program {command!r} is not installed, or not on PATH"
    return Finding("bad", server.name, problem)


async def _sandbox(settings: Settings, preferences: Preferences) -> Finding:
    sandbox = Sandbox(sandbox_settings(preferences, settings))
    try:
        description, confines = await sandbox.description(), await sandbox.confines()
    except ToolFailure as error:
        return Finding("bad", "sandbox", str(error))
    advice = "" if confines or sandbox.settings.mode == "off" else "; install bubblewrap"
    return Finding("ok" if confines else "note", "sandbox", f"{description}{advice}")


CHECKS = (_python, _sessions, _preferences, _models, _plugins, _servers)
"""The name of a check is the subject of its failure."""
