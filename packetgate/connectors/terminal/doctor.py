"""`packetgate doctor`: what is configured, what answers, what is missing and how to repair it."""

import platform
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from rich.table import Table

from packetgate.connectors import rendering
from packetgate.connectors.opening import open_sessions
from packetgate.connectors.options import run_settings_from
from packetgate.connectors.terminal.reports import unfitting
from packetgate.deciders.language.probe import REQUEST, ProbeResult, Trial, load, probe_model, probe_reviewer
from packetgate.graph.composition import open_tools, sandbox_settings
from packetgate.graph.pool import model_pool
from packetgate.graph.records.passports import read_passport
from packetgate.graph.records.passports import version as version_of_cases
from packetgate.graph.settings import Settings
from packetgate.graph.storage import open_checkpointer, open_store
from packetgate.models.calling import HeldBy
from packetgate.models.endpoint import Role
from packetgate.models.model import LocalModelInfo, Model
from packetgate.models.pool import ModelPool
from packetgate.models.transport import model_label, timeout_of
from packetgate.state.base import ConfidenceSource
from packetgate.state.context import RoutingContext
from packetgate.state.errors import ConfigError, PacketgateError
from packetgate.state.printing import counted
from packetgate.state.sections import ServerHealth
from packetgate.tools.builtin.files import ToolFailure
from packetgate.tools.builtin.sandbox import Sandbox
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.preferences import Preferences, load_preferences
from packetgate.tools.risk.vouching import unvouched_line
from packetgate.tools.servers.config import McpConfig, load_config
from packetgate.tools.servers.opening import open_hub

PACKAGES = ("langgraph", "langchain-core", "fastmcp", "mcp", "pydantic")
STYLE = {"ok": "green", "note": "yellow", "bad": "red"}
UNUSABLE = 2
"""The exit status when a model cannot be loaded or asked. What it answers is no error: reflexes stand in for it."""
HELD_BY: dict[HeldBy, str] = {
    "grammar": "a grammar",
    "json_schema": "the server's json_schema",
    "tool_call": "the server's tool calling",
    "json_object": "the server's json_object",
    "prompt": "the words of the prompt alone",
}
KNOWN = (ConfidenceSource.MEASURED, ConfidenceSource.STATED, ConfidenceSource.CALIBRATED)


@dataclass(frozen=True)
class Finding:
    """One thing that was checked."""

    verdict: Literal["ok", "note", "bad"]
    what: str
    how: str
    status: int = 1
    """The exit status of the command, if this is bad."""


async def run_doctor(settings: Settings, *, models: bool, as_json: bool) -> int:
    """Print all findings, with `models` also those of a trial of each model; return 0 if none is bad."""
    tools, catalogue = await _tools(settings)
    run_settings, context = _run_settings(settings)
    findings = [
        *await _server_of_turns(settings),
        Finding("ok", "python", f"{platform.python_version()}, packetgate {version('packetgate')}"),
        Finding("ok", "packages", ", ".join(f"{name} {version(name)}" for name in PACKAGES)),
        _full_text_search(),
        await _sessions(settings),
        *(one for one in run_settings if one not in tools),
        *([] if models else await _models(settings)),
        *await _evaluated(settings),
        *tools,
    ]
    if not as_json:
        _show(findings)
    if models:
        async for found in probed(settings, catalogue, context):
            if not as_json:
                _show(found)
            findings += found
    if as_json:
        rendering.write_json([{"verdict": one.verdict, "what": one.what.strip(), "how": one.how} for one in findings])
    return exit_status(findings)


def exit_status(findings: Sequence[Finding]) -> int:
    """Return the exit status of the worst finding; 0 if none is bad."""
    return max((one.status for one in findings if one.verdict == "bad"), default=0)


def _show(findings: Sequence[Finding]) -> None:
    table = Table(box=None, pad_edge=False, show_header=False)
    for width in (4, 14):  # so that tables printed one after the other line up
        table.add_column(no_wrap=True, min_width=width)
    table.add_column(overflow="fold")
    for one in findings:
        table.add_row(rendering.plain(one.verdict, STYLE[one.verdict]), one.what, rendering.plain(one.how))
    rendering.console().print(table)


async def _server_of_turns(settings: Settings) -> list[Finding]:
    if not settings.url:
        return []
    try:
        async with open_sessions(settings):
            how = f"{settings.url} runs the turns, by its assistant {settings.assistant}; below is what is here"
            return [Finding("ok", "PACKETGATE_URL", how)]
    except PacketgateError as error:
        return [Finding("bad", "PACKETGATE_URL", str(error))]


def _run_settings(settings: Settings) -> tuple[list[Finding], RoutingContext]:
    try:
        found = run_settings_from(settings)
    except ConfigError as error:
        return [Finding("bad", "preferences", str(error))], RoutingContext()
    how = f"{len(found.sources)} of {len(RoutingContext.model_fields)} set; `packetgate settings` shows from where"
    return [Finding("ok", "settings", how)] if found.sources else [], found.context


def _full_text_search() -> Finding:
    try:
        with sqlite3.connect(":memory:") as database:
            database.execute("CREATE VIRTUAL TABLE probe USING fts5(text)")
    except sqlite3.OperationalError as error:
        how = f"this Python's SQLite has no FTS5 ({error}): use a Python from python.org or uv"
        return Finding("bad", "search", how)
    return Finding("ok", "search", f"SQLite {sqlite3.sqlite_version} with full-text search")


async def _sessions(settings: Settings) -> Finding:
    try:
        async with open_checkpointer(settings):
            return Finding("ok", "sessions", "PostgreSQL" if settings.database_url else str(settings.database))
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
    try:
        known_as = await model_pool(settings).known_as()
        if known_as is None:
            return []
        async with open_store(settings) as store:
            kept = await read_passport(store, known_as)
    except (PacketgateError, OSError):
        return []  # reported with the models and the sessions
    if kept is None:
        return [Finding("note", "evaluated", "not yet: `packetgate evaluate` tries the model on eighty cases")]
    if kept.version != version_of_cases():
        return [Finding("note", "evaluated", "by an earlier Packetgate: `packetgate evaluate` tries the model anew")]
    cases = f"{kept.figures().right} of {kept.of} cases right, {kept.believed}; {kept.mean('seconds'):.1f} s a turn"
    curve = "" if kept.curves else "; no curve"
    return [Finding("ok", "evaluated", f"{cases}; on {kept.at.astimezone():%Y-%m-%d}{curve}")]


async def _tools(settings: Settings) -> tuple[list[Finding], Catalogue]:
    path = settings.preferences_path
    unusable = [
        *_unusable("servers", load_config, settings.config_path),
        *_unusable("preferences", load_preferences, path),
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
    where = f"{len(health)} from {config.source}; files below {settings.root.resolve()}; logs in {settings.logs_path}"
    found = [Finding("ok", "servers", where)]
    found += [Finding("bad" if one.kind == "left out" else "note", "mcp.json", str(one)) for one in config.remarks]
    for one in health:
        found += [_server(one, config), *(Finding("note", f"  {one.name}", line) for line in notes.get(one.name, ()))]
    held = [spec for spec in catalogue.values() if spec.unvouched]
    for server in dict.fromkeys(spec.server for spec in held):
        found.append(Finding("note", server, unvouched_line([spec for spec in held if spec.server == server])))
    if "ai.execute" in catalogue:
        found.append(await _sandbox(settings, catalogue.preferences))
    return [*found, *_preferences(path, catalogue)], catalogue


async def _sandbox(settings: Settings, preferences: Preferences) -> Finding:
    sandbox = Sandbox(sandbox_settings(preferences, settings))
    try:
        folder = settings.root.resolve()
        description, confines = await sandbox.description(folder), await sandbox.confines(folder)
    except ToolFailure as error:
        return Finding("bad", "sandbox", str(error))
    advice = "" if confines or sandbox.settings.mode == "off" else "; install bubblewrap"
    return Finding("ok" if confines else "note", "sandbox", f"{description}{advice}")


def _unusable(what: str, load: Callable[[Path | None], object], path: Path | None) -> list[Finding]:
    try:
        load(path)
    except ConfigError as error:
        return [Finding("bad", what, str(error))]
    return []


def _preferences(path: Path | None, catalogue: Catalogue) -> list[Finding]:
    if path is None:
        return []
    read = catalogue.preferences
    holds = f"{path}: permanent {len(read.permanent)}, pools {len(read.pools)}, tools {len(read.tools)}"
    policy = f"{counted(len(read.policy.rules), 'rule')}, remember = {read.policy.remember}"
    notes = (Finding("note", "preferences", line) for line in unfitting(catalogue, path))
    return [Finding("ok", "preferences", holds), Finding("ok", "policy", policy), *notes]


def _server(server: ServerHealth, config: McpConfig) -> Finding:
    if server.state == "ready":
        return Finding("note" if server.problem else "ok", server.name, server.problem or counted(server.tools, "tool"))
    entry = next((one.entry for one in config.servers if one.name == server.name), {})
    command, advice = entry.get("command"), ""
    if isinstance(command, str) and "${" not in command and shutil.which(command) is None:
        advice = f"; the program {command!r} is not installed, or not on PATH"
    return Finding("bad", server.name, f"{server.problem or 'still starting'}{advice}")


async def probed(settings: Settings, catalogue: Catalogue, context: RoutingContext) -> AsyncIterator[list[Finding]]:
    """Try each model with these tools, or the built-in ones, and yield its findings."""
    try:
        pool = model_pool(settings)
    except PacketgateError as error:
        yield [Finding("bad", "models", str(error), UNUSABLE)]
        return
    tools = catalogue or await _built_in(settings)
    for roles in pool.players:
        yield await _probed(pool, roles, tools, context)
    if pool.has_reviewer:
        yield await _reviewer(pool, tools, context)


async def _probed(pool: ModelPool, roles: tuple[Role, ...], tools: Catalogue, context: RoutingContext) -> list[Finding]:
    who = ", ".join(roles)
    found: list[Finding] = []
    try:
        loaded = await load(pool, roles[0])
        if loaded is None:
            return [Finding("note", who, "reflex: there is no model to examine. Set --lite and --prime to add one")]
        model, seconds = loaded
        found += [Finding("ok", who, f"{pool.describe(roles[0])}, ready in {seconds:.1f} s"), *_file(model.local_info)]
        result = await probe_model(model, tools, context)
        found += [*_work(result), *_patience(result, model, context, roles[0])]
    except PacketgateError as error:
        found.append(Finding("bad", who, str(error), UNUSABLE))
    return found


async def _reviewer(pool: ModelPool, tools: Catalogue, context: RoutingContext) -> list[Finding]:
    try:
        endpoint = await pool.reviewer()
        tool, review, seconds = await probe_reviewer(pool.reviewer, tools, context)
    except PacketgateError as error:
        return [Finding("bad", "reviewer", f"{error} (calls count 0.0 until it answers)", UNUSABLE)]
    probability = review.confidence if review.approved else 1 - review.confidence
    answer = f"{probability:.2f} that {tool} should run for {REQUEST!r}; {seconds:.1f} s"
    runs = review.approved and review.confidence >= context.confidence_threshold
    low = f"below confidence_threshold, {context.confidence_threshold:g}: you would be asked about a plain read"
    question = Finding("ok" if runs else "note", "  question", f"{answer}; {'so it would run' if runs else low}")
    return [
        Finding("ok", "reviewer", model_label(endpoint)),
        question,
        *_timeout(seconds, timeout_of(endpoint), "prime"),
    ]


async def _built_in(settings: Settings) -> Catalogue:
    hub = await open_hub(McpConfig(), settings.root, settings.logs_path, None, patience_s=settings.patience_s)
    async with hub:
        return await hub.catalogue()


def _file(facts: LocalModelInfo | None) -> Iterator[Finding]:
    if facts is None:
        return
    yield Finding("ok", "  model", facts.description)
    size = f"{facts.context_size:,} tokens of the {facts.trained_context:,} it was trained on (?n_ctx=N sets it)"
    yield Finding("ok", "  context", size)
    none = "ChatML, because the file has none: check that the model knows it"
    yield Finding(*(("ok", "  template", "the file's own") if facts.own_template else ("note", "  template", none)))


def _work(result: ProbeResult) -> Iterator[Finding]:
    for stage, trial in result.stages.items():
        yield _decision(stage, trial)
    yield Finding("ok", "  speed", _speed(result.selection))
    sources = {"selection": result.selection.confidence, "review": result.review.confidence}
    confidence = ", ".join(
        f"{stage} by {source}" if source in KNOWN else f"{stage} unknown" for stage, source in sources.items()
    )
    if ConfidenceSource.STATED in sources.values():
        confidence += " (stated: a number that the model writes, which tends to be too high)"
    measured = {*sources.values()} <= {ConfidenceSource.MEASURED, ConfidenceSource.CALIBRATED}
    yield Finding("ok" if measured else "note", "  confidence", confidence)
    if result.selection.chose == "none":
        way = "if its server passes over tools, set ?native_tools=false"
        yield Finding("note", "  tools", f"it answered {REQUEST!r} without a call: {way}")
    if result.only_validated:
        names = ", ".join(result.only_validated)
        yield Finding("note", "  only validated", f"nothing holds the model to the schema of {names}")


def _decision(stage: str, trial: Trial) -> Finding:
    held_by = trial.answers[-1].answer.held_by if trial.answers else None
    how = f", held to its form by {HELD_BY[held_by]}" if held_by else ""
    how += f"; {counted(trial.usage.thought_tokens, 'token')} of thoughts" if trial.usage.thought_tokens else ""
    how += f"; {trial.seconds:.1f} s"
    if trial.problem:
        instead = "the gate counts 0.0 instead" if stage == "review" else "reflexes stand in"
        return Finding("note", f"  {stage}", f"not usable, {instead}: {trial.problem}{how}")
    late = "" if trial.tries < 2 else f" at the {'second' if trial.tries == 2 else 'third or a later'} try"
    return Finding("note" if held_by == "prompt" else "ok", f"  {stage}", f"usable{late}{how}")


def _patience(result: ProbeResult, model: Model, context: RoutingContext, role: Role) -> Iterator[Finding]:
    seconds, longest = [one.seconds for one in result.stages.values()], model.thoughts.longest
    timeout = timeout_of(model.chat)
    if longest:
        low = "reasoning_effort=low, or enable_thinking=false where its chat template knows that"
        less = "enable_thinking=false" if timeout is None else low
        is_set = model.options.reasoning_effort or model.options.enable_thinking is False
        way = "" if is_set else f"; {less}, behind a ? after its name, has it think less"
        yield Finding("ok", "  thoughts", f"up to {counted(longest, 'token')} before an answer{way}")
    if timeout is None:
        return
    yield from _timeout(max(seconds), timeout, role)
    if sum(seconds) > context.turn_budget_s / 2:
        budget = f"the stages took {sum(seconds):.0f} s, and a turn has {context.turn_budget_s:g}: raise turn_budget_s"
        yield Finding("note", "  turn_budget_s", budget)


def _timeout(slowest: float, timeout: float | None, role: Role) -> Iterator[Finding]:
    if timeout and slowest > timeout / 2:
        how = f"one answer took {slowest:.0f} s of at most {timeout:g}: raise PACKETGATE_{role.upper()}_TIMEOUT"
        yield Finding("note", "  timeout", how)


def _speed(selection: Trial) -> str:
    timed = selection.answers[0]
    usage = timed.answer.usage
    if timed.writing_speed is None:
        return f"unknown: the server does not count tokens; the answer took {timed.seconds:.1f} s"
    if timed.reading_speed is None:
        written = f"{timed.writing_speed:,.1f} answer tokens/s ({usage.output_tokens:,} in {timed.seconds:.1f} s"
        return f"{written}, reading {usage.input_tokens:,} prompt tokens included)"
    read = f"{timed.reading_speed:,.0f} prompt tokens/s ({timed.evaluated:,} evaluated)"
    return f"{read}, {timed.writing_speed:,.1f} answer tokens/s ({usage.output_tokens:,} written)"
