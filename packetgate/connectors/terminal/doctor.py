"""`packetgate doctor`: check what is configured, what answers, and what is missing."""

import platform
import shutil
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Literal

from packetgate.connectors import rendering
from packetgate.connectors.opening import open_sessions
from packetgate.connectors.options import run_settings_from
from packetgate.connectors.terminal.reports import unmatched
from packetgate.deciders.language.probe import REQUEST, TimedAnswer, Trial, load, probe_model, probe_reviewer
from packetgate.graph.composition import model_pool, open_tools, sandbox_settings
from packetgate.graph.records import evaluation_version, read_passport
from packetgate.graph.settings import Settings
from packetgate.graph.storage import open_checkpointer, open_store
from packetgate.models.endpoint import Role
from packetgate.models.pool import ModelPool
from packetgate.models.transport import model_label, timeout_of
from packetgate.state.base import ConfidenceSource
from packetgate.state.context import RoutingContext
from packetgate.state.errors import PacketgateError
from packetgate.state.printing import counted
from packetgate.state.sections import ServerHealth
from packetgate.tools.builtin.files import ToolFailure
from packetgate.tools.builtin.sandbox import Sandbox
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.preferences import Preferences, load_preferences
from packetgate.tools.risk.tool import unvouched_note
from packetgate.tools.servers.config import McpConfig, load_config
from packetgate.tools.servers.opening import open_hub

PACKAGES = ("langgraph", "langchain-core", "fastmcp", "mcp", "pydantic")
STYLE = {"ok": "green", "note": "yellow", "bad": "red"}
UNUSABLE = 2
"""Exit status if a model cannot be loaded or asked."""


@dataclass(frozen=True)
class Diagnosis:
    """The result of one check."""

    verdict: Literal["ok", "note", "bad"]
    subject: str
    text: str
    status: int = 1
    """The exit status of the command, if the verdict is bad."""


_Check = Callable[[Settings], AsyncIterator[Diagnosis]]


async def run_doctor(settings: Settings, *, models: bool, as_json: bool) -> int:
    """Print the results of all checks and return the exit status. With `models`, also try each model."""
    findings: list[Diagnosis] = []
    with rendering.console(stderr=True).status("checking ..."):
        for subject, check in (CHECKS | {"models": probe_models} if models else CHECKS).items():
            for finding in [one async for one in _checked(subject, check, settings)]:
                if finding.text not in {one.text for one in findings if one.verdict == "bad"}:
                    findings.append(finding)
    if as_json:
        rendering.write_json([{"verdict": one.verdict, "what": one.subject, "how": one.text} for one in findings])
    else:
        table = rendering.table("", "", "", wrapped=(2,), header=False)
        for one in findings:
            table.add_row(
                rendering.safe_text(one.verdict, STYLE[one.verdict]), one.subject, rendering.safe_text(one.text)
            )
        rendering.console().print(table)
    return exit_status(findings)


def exit_status(findings: Sequence[Diagnosis]) -> int:
    """Return the exit status of the worst finding; 0 if none is bad."""
    return max((finding.status for finding in findings if finding.verdict == "bad"), default=0)


async def _checked(subject: str, check: _Check, settings: Settings) -> AsyncIterator[Diagnosis]:
    try:
        async for finding in check(settings):
            yield finding
    except PacketgateError as error:
        yield Diagnosis("bad", subject, f"{error} [{error.code}]")


async def _server(settings: Settings) -> AsyncIterator[Diagnosis]:
    if settings.url:
        async with open_sessions(settings):
            text = f"{settings.url} runs the turns, assistant {settings.assistant}; other checks are local"
            yield Diagnosis("ok", "PACKETGATE_URL", text)


async def _python(_settings: Settings) -> AsyncIterator[Diagnosis]:
    yield Diagnosis("ok", "python", f"{platform.python_version()}, packetgate {version('packetgate')}")
    yield Diagnosis("ok", "packages", ", ".join(f"{name} {version(name)}" for name in PACKAGES))


async def _sessions(settings: Settings) -> AsyncIterator[Diagnosis]:
    async with open_checkpointer(settings):
        yield Diagnosis("ok", "sessions", "PostgreSQL" if settings.database_url else str(settings.database))


async def _preferences(settings: Settings) -> AsyncIterator[Diagnosis]:
    path = settings.preferences_path
    if path is not None:
        file = load_preferences(path)
        yield Diagnosis(
            "ok",
            "preferences",
            f"{path}: permanent {len(file.permanent)}, pools {len(file.pools)}, tools {len(file.tools)}",
        )
        policy = f"{counted(len(file.policy.rules), 'rule')}, remember = {file.policy.remember}"
        yield Diagnosis("ok", "policy", policy)


async def _run_settings(settings: Settings) -> AsyncIterator[Diagnosis]:
    count = len(run_settings_from(settings).sources)
    if count:
        text = f"{count} of {len(RoutingContext.model_fields)} set; `packetgate settings` shows their sources"
        yield Diagnosis("ok", "settings", text)


async def _models(settings: Settings) -> AsyncIterator[Diagnosis]:
    models = model_pool(settings)
    await models.check()
    for roles in models.players:
        yield Diagnosis("ok", ", ".join(roles), models.describe(roles[0]))
    if settings.lite == settings.prime == "reflex":
        yield Diagnosis("note", "models", "no language model. `packetgate init` looks for one")


async def _evaluated(settings: Settings) -> AsyncIterator[Diagnosis]:
    try:
        known_as = await model_pool(settings).known_as()
    except OSError:  # a missing file; the check of the models reports it
        return
    if known_as is None:
        return
    async with open_store(settings) as store:
        passport = await read_passport(store, known_as)
    if passport is None or passport.version != evaluation_version():
        state = "not yet" if passport is None else "by another version"
        yield Diagnosis("note", "evaluated", f"{state}: `packetgate evaluate` tries the model on eighty cases")
        return
    right = f"{passport.figures().right} of {passport.of} cases right, {passport.believed}"
    yield Diagnosis("ok", "evaluated", f"{right}; on {passport.at.astimezone():%Y-%m-%d}")


async def _servers(settings: Settings) -> AsyncIterator[Diagnosis]:
    config = load_config(settings.config_path, settings.root)
    async with open_tools(settings) as hub:
        catalogue, health, notes = await hub.catalogue(), hub.health(), hub.notes()
    where = f"{len(health)} from {config.source}; files below {settings.root.resolve()}; logs in {settings.logs_path}"
    yield Diagnosis("ok", "servers", where)
    for remark in config.remarks:
        yield Diagnosis("bad" if remark.kind == "left out" else "note", "mcp.json", str(remark))
    for server in health:
        yield _server_health(server, config)
        for note in notes.get(server.name, ()):
            yield Diagnosis("note", server.name, note)
    unvouched = [spec for spec in catalogue.values() if spec.unvouched]
    for name in dict.fromkeys(spec.server for spec in unvouched):
        yield Diagnosis("note", name, unvouched_note([spec for spec in unvouched if spec.server == name]))
    if "ai.execute" in catalogue:
        yield await _sandbox(settings, catalogue.preferences)
    if settings.preferences_path is not None:
        for line in unmatched(catalogue, settings.preferences_path):
            yield Diagnosis("note", "preferences", line)


def _server_health(server: ServerHealth, config: McpConfig) -> Diagnosis:
    if server.state == "ready":
        text = server.problem or counted(server.tools, "tool")
        return Diagnosis("note" if server.problem else "ok", server.name, text)
    entry = next((configured.entry for configured in config.servers if configured.name == server.name), {})
    command, advice = entry.get("command"), ""
    if isinstance(command, str) and "${" not in command and shutil.which(command) is None:
        advice = f"; the program {command!r} is not installed, or not on PATH"
    return Diagnosis("bad", server.name, f"{server.problem or 'still starting'}{advice}")


async def _sandbox(settings: Settings, preferences: Preferences) -> Diagnosis:
    sandbox = Sandbox(sandbox_settings(preferences, settings))
    try:
        folder = settings.root.resolve()
        description, confines = await sandbox.description(folder), await sandbox.confines(folder)
    except ToolFailure as error:
        return Diagnosis("bad", "sandbox", str(error))
    advice = "" if confines or sandbox.settings.mode == "off" else "; install bubblewrap"
    return Diagnosis("ok" if confines else "note", "sandbox", f"{description}{advice}")


async def probe_models(settings: Settings) -> AsyncIterator[Diagnosis]:
    """Load and try each model with the built-in tools, and yield the findings."""
    try:
        pool, context = model_pool(settings), run_settings_from(settings).context
        hub = await open_hub(McpConfig(), settings.root, settings.logs_path, None, patience_s=settings.patience_s)
        async with hub:
            catalogue = await hub.catalogue()
    except PacketgateError as error:
        yield _unusable("models", error)
        return
    trials = {", ".join(roles): _probed(pool, roles[0], ", ".join(roles), catalogue, context) for roles in pool.players}
    if pool.has_reviewer:
        trials["reviewer"] = _probed_reviewer(pool, catalogue, context)
    for subject, trial in trials.items():
        try:
            async for finding in trial:
                yield finding
        except PacketgateError as error:
            yield _unusable(subject, error)


def _unusable(subject: str, error: PacketgateError) -> Diagnosis:
    return Diagnosis("bad", subject, f"{error} [{error.code}]", UNUSABLE)


async def _probed(
    pool: ModelPool, role: Role, names: str, tools: Catalogue, context: RoutingContext
) -> AsyncIterator[Diagnosis]:
    loaded = await load(pool, role)
    if loaded is None:
        yield Diagnosis("note", names, "reflex: there is no model to try. Set --lite and --prime to add one")
        return
    model, seconds = loaded
    yield Diagnosis("ok", names, f"{pool.describe(role)}, ready in {seconds:.1f} s")
    if info := model.local_info:
        yield Diagnosis("ok", "model", info.description)
        yield Diagnosis("ok", "context", f"{info.context_size:,} tokens of {info.trained_context:,} (?n_ctx=N sets it)")
        template = "the file's own" if info.own_template else "ChatML, because the file has none: check that it fits"
        yield Diagnosis("ok" if info.own_template else "note", "template", template)
    result = await probe_model(model, tools, context)
    for stage, trial in result.stages.items():
        yield _stage(stage, trial)
    yield _speed(result.selection.answers[0])
    sources = [result.selection.confidence, result.review.confidence]
    measured = {*sources} <= {ConfidenceSource.MEASURED, ConfidenceSource.CALIBRATED}
    confidence = "selection: {}; review: {}".format(*(source or "none" for source in sources))
    yield Diagnosis("ok" if measured else "note", "confidence", confidence)
    if result.selection.chose == "none":
        yield Diagnosis(
            "note", "tools", f"no call for {REQUEST!r}: if its server ignores tools, set ?native_tools=false"
        )
    if model.thoughts.longest:
        advice = "; ?reasoning_effort=low or ?enable_thinking=false after its name asks for fewer"
        yield Diagnosis("ok", "thoughts", f"up to {model.thoughts.longest:,} tokens before an answer{advice}")
    for finding in _timeout(max(trial.seconds for trial in result.stages.values()), timeout_of(model.chat), role):
        yield finding


def _stage(stage: str, trial: Trial) -> Diagnosis:
    held_by = trial.answers[-1].answer.held_by if trial.answers else None
    result = "usable"
    if trial.problem:
        instead = "the gate counts 0.0" if stage == "review" else "the rule-based fallback decides"
        result = f"not usable, {instead}: {trial.problem}"
    elif trial.tries > 1:
        result = f"usable at try {trial.tries}"
    details = [result, f"format enforced by {held_by}" if held_by else "", f"{trial.seconds:.1f} s"]
    if trial.usage.thought_tokens:
        details.append(f"{trial.usage.thought_tokens:,} tokens of thoughts")
    return Diagnosis("note" if trial.problem or held_by == "prompt" else "ok", stage, "; ".join(filter(None, details)))


def _speed(timed: TimedAnswer) -> Diagnosis:
    if timed.writing_speed is None:
        return Diagnosis("ok", "speed", f"the server does not count tokens; the answer took {timed.seconds:.1f} s")
    if timed.reading_speed is None:
        return Diagnosis("ok", "speed", f"{timed.writing_speed:,.1f} answer tokens/s, reading the prompt included")
    speeds = f"{timed.reading_speed:,.0f} prompt tokens/s, {timed.writing_speed:,.1f} answer tokens/s"
    return Diagnosis("ok", "speed", speeds)


async def _probed_reviewer(pool: ModelPool, tools: Catalogue, context: RoutingContext) -> AsyncIterator[Diagnosis]:
    endpoint = await pool.reviewer()
    tool, review, seconds = await probe_reviewer(pool.reviewer, tools, context)
    probability = review.confidence if review.approved else 1 - review.confidence
    runs = review.approved and review.confidence >= context.confidence_threshold
    result = "it would run" if runs else f"below confidence_threshold ({context.confidence_threshold:g}): it would ask"
    yield Diagnosis("ok", "reviewer", model_label(endpoint))
    text = f"{probability:.2f} that {tool} should run for {REQUEST!r}; {result}; {seconds:.1f} s"
    yield Diagnosis("ok" if runs else "note", "question", text)
    for finding in _timeout(seconds, timeout_of(endpoint), "prime"):
        yield finding


def _timeout(slowest: float, timeout: float | None, role: Role) -> Iterator[Diagnosis]:
    if timeout and slowest > timeout / 2:
        text = f"one answer took {slowest:.0f} s of at most {timeout:g}: raise PACKETGATE_{role.upper()}_TIMEOUT"
        yield Diagnosis("note", "timeout", text)


CHECKS: dict[str, _Check] = {
    "PACKETGATE_URL": _server,
    "python": _python,
    "sessions": _sessions,
    "preferences": _preferences,
    "settings": _run_settings,
    "models": _models,
    "evaluated": _evaluated,
    "servers": _servers,
}
