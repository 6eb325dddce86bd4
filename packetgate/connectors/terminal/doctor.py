"""`packetgate doctor`: check the configuration, models, servers and programs."""

import asyncio
import json
import platform
import re
import shutil
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import typer

from packetgate.connectors import rendering
from packetgate.connectors.options import AsJson, Lite, McpConfigPath, Prime, run_settings_from, settings_from
from packetgate.connectors.terminal.reports import unmatched_patterns, with_answers
from packetgate.graph.composition import model_pool
from packetgate.graph.records import evidence_version
from packetgate.graph.servers import open_tools, sandbox_settings
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
from packetgate.toolsets.builtin.tool import BUILT_IN
from packetgate.toolsets.servers.config import load_config, placeholders
from packetgate.toolsets.servers.confined import NOT_SANDBOXED, SANDBOX_ERRORS, SANDBOX_HINT, sandbox_problem
from packetgate.toolsets.servers.oauth import login_states
from packetgate.toolsets.servers.stdio import NOT_INSTALLED

MAX_LINE = 300
"""Longest line of a server's output that is shown, in characters."""
_REASON = re.compile(r"(?:npm )?\S*(?:error|exception)\b", re.IGNORECASE)
"""The beginning of the line with the reason for a program's exit; otherwise, the last line."""
_NO_REASON = re.compile(r"^Node\.js v\d|A complete log of this run")
_BROKEN = re.compile("(?:Import|ModuleNotFound|Attribute|Type)Error: ")
"""Errors of a package that was written for another version of a package that it uses."""
PACKAGES = ("packetgate", "langgraph", "langchain-core", "fastmcp", "mcp", "pydantic")


class Finding(NamedTuple):
    """The result of a check."""

    verdict: Literal["ok", "note", "bad"]
    what: str
    how: str
    """The finding; a check that is ok and has an empty text is shown only with `--verbose`."""
    fix: str = ""
    """The fix."""
    more: str = ""
    """Details, which are shown only with `--verbose`."""

    @property
    def full(self) -> str:
        """The finding with all details."""
        return "; ".join(filter(None, [self.how, self.more]))

    def row(self, *, in_full: bool) -> tuple[object, ...]:
        """Return the cells of a table: a problem with its fix, another finding in one line unless `in_full`."""
        shows_all = in_full or self.verdict == "bad"
        text = self.full if in_full else self.how
        cell = rendering.safe_text(f"{text}\n→ {self.fix}" if self.fix and shows_all else text)
        cell.no_wrap, cell.overflow = not shows_all, "fold" if shows_all else "ellipsis"
        return self.verdict, self.what, cell


async def doctor(
    mcp_config: McpConfigPath = None,
    lite: Lite = None,
    prime: Prime = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show all findings in full.")] = False,
    as_json: AsJson = False,
) -> int:
    """Check the configuration, models, servers and programs.

    Problems are listed first, with their fixes. Exit status 1 means that something is missing.
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
    if as_json:
        listed = [{"verdict": one.verdict, "what": one.what, "how": one.full, "fix": one.fix} for one in findings]
        rendering.write_json(listed)
    else:
        findings.sort(key=lambda finding: ("bad", "note", "ok").index(finding.verdict))
        rows = [finding.row(in_full=verbose) for finding in findings if finding.how or verbose]
        rendering.console().print(rendering.table(("", "", ""), rows))
        if not verbose:
            rendering.say("`packetgate doctor --verbose` shows all of it")
    return int(any(finding.verdict == "bad" for finding in findings))


async def _python(_settings: Settings) -> AsyncIterator[Finding]:
    own, *others = (f"{name} {version(name)}" for name in PACKAGES)
    yield Finding("ok", "python", f"{platform.python_version()}, {own}", more=", ".join(others))


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
        yield Finding("ok", "plug-ins", "", more=", ".join(plugins.by_name))
    for problem in (*plugins.problems, *plugins.wrong_parts()):
        yield Finding("note" if LEFT_OUT in problem else "bad", "plug-ins", problem)


async def _servers(settings: Settings) -> AsyncIterator[Finding]:
    config = load_config(settings.config_path, settings.root)
    sandbox = sandbox_settings(load_preferences(settings.preferences_path), settings)
    if problem := await asyncio.to_thread(sandbox_problem, sandbox):
        typer.echo(f"packetgate: {problem}", err=True)
    async with open_tools(settings) as hub:
        catalogue = await hub.catalogue(wait_for_all=True)
        health, notes, rights = hub.health(), hub.tool_notes(), hub.rights()
    where = f"files below {settings.root.resolve()}; logs in {settings.logs_path}"
    for remark in config.remarks:
        yield Finding("bad" if remark.kind == "left out" else "note", "mcp.json", str(remark))
    entries = {server.name: server.entry for server in config.servers}
    sources = Counter(config.source if server.name in entries else BUILT_IN for server in health)
    counts = ", ".join(f"{count} {'' if source == BUILT_IN else 'from '}{source}" for source, count in sources.items())
    yield Finding("ok", "servers", counts or "none", more=where)
    for server in health:
        entry = entries.get(server.name, {})
        filled_in = ", ".join(placeholders(entry))
        if filled_in:
            yield Finding("note", server.name, f"a placeholder is to be filled in {config.source}: {filled_in}")
        if server.state == "ready" or not filled_in:
            log = settings.logs_path / f"{server.name}.log"
            yield await asyncio.to_thread(_server, server, entry, rights.get(server.name, ""), log)
        for note in notes.get(server.name, ()):
            yield Finding("note", server.name, note)
    for state in await asyncio.to_thread(lambda: [*login_states(config.servers, settings.logins_path)]):
        yield Finding("ok" if state.is_usable else "note", state.server, state.text)
    yield Finding("ok", "registry", "", more=load_registry().description)
    if "ai.execute" in catalogue:
        yield await _sandbox(settings, catalogue.preferences)
    for line in unmatched_patterns(catalogue, settings.preferences_path):
        yield Finding("note", "preferences", line)
    for line in rule_problems(catalogue.preferences.policy.rules, catalogue):
        yield Finding("note", "policy", line)
    specs = await with_answers([*catalogue.values()], settings)  # last, because a damaged database ends the check
    sources = Counter(f"{spec.risk}, said by {spec.risk_source}" for spec in specs)
    if sources:
        yield Finding("ok", "risks", "", more="; ".join(f"{name}: {count}" for name, count in sorted(sources.items())))
    unconfirmed_reads = [spec for spec in specs if spec.is_unconfirmed_read and spec.risk is not Risk.READ]
    for name in dict.fromkeys(spec.server for spec in unconfirmed_reads):
        note, fix = unconfirmed_reads_note([spec for spec in unconfirmed_reads if spec.server == name])
        yield Finding("note", name, note, fix)


def _server(server: ServerHealth, entry: Mapping[str, Any], rights: str, log: Path) -> Finding:
    command, problem = entry.get("command"), server.problem
    if server.state == "ready":
        is_free = NOT_SANDBOXED in rights
        text = f"{problem or counted(server.tools, 'tool')}{f'; {NOT_SANDBOXED}' if is_free else ''}"
        return Finding("note" if problem else "ok", server.name, text, more=rights)
    if isinstance(command, str) and "${" not in command and shutil.which(command) is None:
        return Finding("bad", server.name, NOT_INSTALLED.format(command), more=problem)
    output = log.read_text(errors="replace") if command and server.state == "failed" and log.is_file() else ""
    lines = [line.strip() for line in output.splitlines() if line.strip() and not _NO_REASON.search(line)]
    if not lines:
        return Finding("bad", server.name, problem or "still starting")
    last = next((line for line in reversed(lines) if _REASON.match(line)), lines[-1])[:MAX_LINE]
    fix, arguments = f"its output is in {log}", entry.get("args", [])
    if _BROKEN.match(last) and "site-packages" in output and Path(str(command)).stem == "uvx":
        pinned = json.dumps(["--with", "mcp<2", *arguments], ensure_ascii=False)
        fix = f'the server\'s own package is broken with the newest SDK; an older SDK may help: "args": {pinned}'
    elif SANDBOX_ERRORS.search(last):
        fix = f"{SANDBOX_HINT}; {fix}"
    return Finding("bad", server.name, last, fix, problem)


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
