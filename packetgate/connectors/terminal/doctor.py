"""`packetgate doctor`: what is configured, what answers, what is missing and how to repair it."""

import json
import platform
import shutil
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from rich.table import Table
from rich.text import Text

from packetgate.connectors import rendering
from packetgate.connectors.opening import open_sessions
from packetgate.connectors.options import run_settings_from
from packetgate.connectors.terminal.reports import unfitting
from packetgate.deciders.language.probe import (
    REQUEST,
    ProbeResult,
    TimedAnswer,
    Trial,
    load,
    probe_model,
    probe_reviewer,
)
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
from packetgate.state.printing import counted, printable
from packetgate.state.sections import ServerHealth
from packetgate.tools.builtin.files import ToolFailure
from packetgate.tools.builtin.sandbox import Sandbox
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.preferences import Preferences, load_preferences, read_file
from packetgate.tools.risk.vouching import unvouched_line
from packetgate.tools.servers.config import McpConfig, Remark, load_config
from packetgate.tools.servers.opening import open_hub

STYLE = {"ok": "green", "note": "yellow", "bad": "red"}
WIDTHS = (4, 14)
"""Least widths of the first columns, so that tables printed one after the other line up."""


@dataclass(frozen=True)
class Finding:
    """One thing looked at."""

    verdict: Literal["ok", "note", "bad"]
    what: str
    how: str
    status: int = 1
    """What the command ends with, if this is bad."""


def show(findings: Sequence[Finding]) -> None:
    """Print the findings, a row each."""
    table = Table(box=None, pad_edge=False, show_header=False)
    for width in WIDTHS:
        table.add_column(no_wrap=True, min_width=width)
    table.add_column(overflow="fold", ratio=1)
    for one in findings:
        table.add_row(Text(one.verdict, style=STYLE[one.verdict]), one.what, Text(printable(one.how)))
    rendering.console().print(table)


def show_json(findings: Sequence[Finding]) -> None:
    """Print the findings as JSON."""
    found = [{"verdict": one.verdict, "what": one.what.strip(), "how": one.how} for one in findings]
    sys.stdout.write(json.dumps(found, indent=2, ensure_ascii=False) + "\n")


def exit_status(findings: Sequence[Finding]) -> int:
    """Return the exit status that the worst of the findings makes; 0 if none is bad."""
    return max((one.status for one in findings if one.verdict == "bad"), default=0)


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
        from packetgate.connectors.terminal.doctor import probed

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
    try:
        found = run_settings_from(settings)
    except ConfigError as error:
        return [Finding("bad", "preferences", str(error))], RoutingContext()
    how = f"{len(found.sources)} of {len(RoutingContext.model_fields)} set; `packetgate settings` shows from where"
    return [Finding("ok", "settings", how)] if found.sources else [], found.context


def _serve(path: Path | None) -> list[Finding]:
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


UNUSABLE_STATUS = 2
"""The exit status when a model cannot be loaded or asked. What it answers is no error: reflexes stand in for it."""

HELD_BY: dict[HeldBy, str] = {
    "grammar": "a grammar",
    "json_schema": "the server's json_schema",
    "tool_call": "the server's tool calling",
    "json_object": "the server's json_object",
    "prompt": "the words of the prompt alone",
}
INSTEAD = {"review": "the gate counts 0.0 instead"}
THINKS_LESS = "reasoning_effort=low, or enable_thinking=false where its chat template knows that"


async def probed(settings: Settings, catalogue: Catalogue, context: RoutingContext) -> AsyncIterator[list[Finding]]:
    """Yield what is found of each model, one after the other, over these tools; over the built-in ones if none."""
    try:
        pool = model_pool(settings)
    except PacketgateError as error:
        yield [Finding("bad", "models", str(error), UNUSABLE_STATUS)]
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
        found += [Finding("ok", who, f"{pool.describe(roles[0])}, ready in {seconds:.1f} s")]
        found += _local(model.local_info)
        seen = await probe_model(model, tools, context)
        found += [*_work(seen), *_patience(seen, model, context, roles[0])]
    except PacketgateError as error:
        found.append(Finding("bad", who, str(error), UNUSABLE_STATUS))
    return found


async def _reviewer(pool: ModelPool, tools: Catalogue, context: RoutingContext) -> list[Finding]:
    try:
        endpoint = await pool.reviewer()
        tool, found, seconds = await probe_reviewer(pool.reviewer, tools, context)
    except PacketgateError as error:
        return [Finding("bad", "reviewer", f"{error} (calls count 0.0 until it answers)", UNUSABLE_STATUS)]
    probability = found.confidence if found.approved else 1 - found.confidence
    said = f"{probability:.2f} that {tool} should run for {REQUEST!r}; {seconds:.1f} s"
    if runs := found.approved and found.confidence >= context.confidence_threshold:
        said += "; so it would run"
    else:
        said += f"; below confidence_threshold, {context.confidence_threshold:g}: you would be asked about a plain read"
    findings = [Finding("ok", "reviewer", model_label(endpoint)), Finding("ok" if runs else "note", "  question", said)]
    return [*findings, *_timeout(seconds, timeout_of(endpoint), "prime")]


async def _built_in(settings: Settings) -> Catalogue:
    hub = await open_hub(McpConfig(), settings.root, settings.logs_path, None, patience_s=settings.patience_s)
    async with hub:
        return await hub.catalogue()


def _local(facts: LocalModelInfo | None) -> Iterator[Finding]:
    if facts is None:
        return
    yield Finding("ok", "  model", facts.description)
    size = f"{facts.context_size:,} tokens of the {facts.trained_context:,} it was trained on (?n_ctx=N sets it)"
    yield Finding("ok", "  context", size)
    if facts.own_template:
        yield Finding("ok", "  template", "the file's own")
    else:
        yield Finding("note", "  template", "ChatML, because the file has none: check that the model knows it")


def _work(seen: ProbeResult) -> Iterator[Finding]:
    for stage, trial in seen.stages.items():
        yield _decision(stage, trial)
    yield Finding("ok", "  speed", _speed(seen.selection.answers[0]))
    sources = {"selection": seen.selection.confidence, "review": seen.review.confidence}
    known = (ConfidenceSource.MEASURED, ConfidenceSource.STATED, ConfidenceSource.CALIBRATED)
    told = [f"{stage} by {source}" if source in known else f"{stage} unknown" for stage, source in sources.items()]
    confidence = ", ".join(told)
    if ConfidenceSource.STATED in sources.values():
        confidence += " (stated: a number that the model writes, which tends to be too high)"
    measured = set(sources.values()) <= {ConfidenceSource.MEASURED, ConfidenceSource.CALIBRATED}
    yield Finding("ok" if measured else "note", "  confidence", confidence)
    if seen.selection.chose == "none":
        way = "if its server passes over tools, set ?native_tools=false"
        yield Finding("note", "  tools", f"it answered {REQUEST!r} without a call: {way}")
    if seen.only_validated:
        names = ", ".join(seen.only_validated)
        yield Finding("note", "  only validated", f"nothing holds the model to the schema of {names}")


def _decision(stage: str, trial: Trial) -> Finding:
    held_by = trial.answers[-1].answer.held_by if trial.answers else None
    held = f", held to its form by {HELD_BY[held_by]}" if held_by else ""
    took = f"; {counted(trial.usage.thought_tokens, 'token')} of thoughts" if trial.usage.thought_tokens else ""
    took += f"; {trial.seconds:.1f} s"
    if trial.problem:
        instead = INSTEAD.get(stage, "reflexes stand in")
        return Finding("note", f"  {stage}", f"not usable, {instead}: {trial.problem}{held}{took}")
    tries = trial.tries
    usable = "usable" if tries < 2 else f"usable at the {'second' if tries == 2 else 'third or a later'} try"
    return Finding("note" if held_by == "prompt" else "ok", f"  {stage}", f"{usable}{held}{took}")


def _patience(seen: ProbeResult, model: Model, context: RoutingContext, role: Role) -> Iterator[Finding]:
    trials, longest = seen.stages.values(), model.thoughts.longest
    slowest, total = max(one.seconds for one in trials), sum(one.seconds for one in trials)
    timeout = timeout_of(model.chat)
    if longest:
        less = "enable_thinking=false" if timeout is None else THINKS_LESS
        asked = model.options.reasoning_effort or model.options.enable_thinking is False
        way = "" if asked else f"; {less}, behind a ? after its name, has it think less"
        yield Finding("ok", "  thoughts", f"up to {counted(longest, 'token')} before an answer{way}")
    if timeout is None:
        return
    yield from _timeout(slowest, timeout, role)
    if total > context.turn_budget_s / 2:
        how = f"the stages took {total:.0f} s, and a turn has {context.turn_budget_s:g}: raise turn_budget_s"
        yield Finding("note", "  turn_budget_s", how)


def _timeout(slowest: float, timeout: float | None, role: Role) -> Iterator[Finding]:
    if timeout and slowest > timeout / 2:
        how = f"one answer took {slowest:.0f} s of at most {timeout:g}: raise PACKETGATE_{role.upper()}_TIMEOUT"
        yield Finding("note", "  timeout", how)


def _speed(timed: TimedAnswer) -> str:
    usage = timed.answer.usage
    if timed.writing_speed is None:
        return f"unknown: the server does not count tokens; the answer took {timed.seconds:.1f} s"
    if timed.reading_speed is None:
        written = f"{timed.writing_speed:,.1f} answer tokens/s ({usage.output_tokens:,} in {timed.seconds:.1f} s"
        return f"{written}, reading {usage.input_tokens:,} prompt tokens included)"
    read = f"{timed.reading_speed:,.0f} prompt tokens/s ({timed.evaluated:,} evaluated)"
    return f"{read}, {timed.writing_speed:,.1f} answer tokens/s ({usage.output_tokens:,} written)"
