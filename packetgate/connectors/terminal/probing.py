"""`packetgate doctor --models`: each model loaded, asked, and how it did."""

from collections.abc import AsyncIterator, Iterator

from packetgate.connectors.terminal.findings import Finding
from packetgate.deciders.language.probe import (
    REQUEST,
    ProbeResult,
    TimedAnswer,
    Trial,
    load,
    probe_model,
    probe_reviewer,
)
from packetgate.graph.pool import model_pool
from packetgate.graph.settings import Settings
from packetgate.models.calling import HeldBy
from packetgate.models.endpoint import Role
from packetgate.models.model import LocalModelInfo, Model
from packetgate.models.pool import ModelPool
from packetgate.models.transport import model_label, timeout_of
from packetgate.state.base import ConfidenceSource
from packetgate.state.context import RoutingContext
from packetgate.state.errors import PacketgateError
from packetgate.state.printing import counted
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.servers.config import McpConfig
from packetgate.tools.servers.opening import open_hub

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
    """Say what a decision endpoint makes of a plain read."""
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
    """Say how much it thinks, whether the time that turns have is enough for that, and what to set where it is not."""
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
