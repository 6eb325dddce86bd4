"""`packetgate doctor --models`: each model loaded, asked, and how it did."""

from collections.abc import AsyncIterator, Iterator

from connectors.terminal.findings import Finding
from deciders.language.probe import ProbeResult, TimedAnswer, Trial, load, probe_model
from graph.pool import model_pool
from graph.settings import Settings
from models.endpoint import Role
from models.model import HeldBy, LocalModelInfo
from models.pool import ModelPool
from state.base import ConfidenceSource
from state.context import RoutingContext
from state.errors import PacketgateError
from tools.catalogue.catalogue import Catalogue
from tools.servers.config import McpConfig
from tools.servers.opening import open_hub

UNUSABLE_STATUS = 2
"""The exit status when a model cannot be loaded or asked. What it answers is no error: reflexes stand in for it."""

HELD_BY: dict[HeldBy, str] = {
    "grammar": "a grammar",
    "json_schema": "the server's json_schema",
    "tool_call": "the server's tool calling",
    "json_object": "the server's json_object",
    "prompt": "the words of the prompt alone",
}
INSTEAD = {"selection": "reflexes select instead", "review": "the gate counts 0.0 instead"}


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
        found += _work(await probe_model(model, tools, context))
    except PacketgateError as error:
        found.append(Finding("bad", who, str(error), UNUSABLE_STATUS))
    return found


async def _built_in(settings: Settings) -> Catalogue:
    hub = await open_hub(McpConfig(), settings.root, settings.home / "logs", None, patience_s=settings.patience_s)
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
    yield _decision("review", seen.review)
    yield _decision("selection", seen.selection)
    yield Finding("ok", "  speed", _speed(seen.selection.answers[0]))
    sources = {"selection": seen.selection.confidence, "review": seen.review.confidence}
    told = [f"{stage} by {source}" if source else f"{stage} unknown" for stage, source in sources.items()]
    confidence = ", ".join(told)
    if ConfidenceSource.STATED in sources.values():
        confidence += " (stated: a number that the model writes, which tends to be too high)"
    measured = set(sources.values()) == {ConfidenceSource.MEASURED}
    yield Finding("ok" if measured else "note", "  confidence", confidence)
    if seen.only_validated:
        names = ", ".join(seen.only_validated)
        yield Finding("note", "  only validated", f"nothing holds the model to the schema of {names}")


def _decision(stage: str, trial: Trial) -> Finding:
    held_by = trial.answers[-1].answer.held_by
    held = f"held to its form by {HELD_BY[held_by]}"
    if trial.problem:
        return Finding("note", f"  {stage}", f"not usable, {INSTEAD[stage]}: {trial.problem}; {held}")
    usable = "usable" if len(trial.answers) == 1 else "usable at the second try"
    return Finding("note" if held_by == "prompt" else "ok", f"  {stage}", f"{usable}, {held}")


def _speed(timed: TimedAnswer) -> str:
    usage = timed.answer.usage
    if timed.writing_speed is None:
        return f"unknown: the server does not count tokens; the answer took {timed.seconds:.1f} s"
    if timed.reading_speed is None:
        written = f"{timed.writing_speed:,.1f} answer tokens/s ({usage.output_tokens:,} in {timed.seconds:.1f} s"
        return f"{written}, reading {usage.input_tokens:,} prompt tokens included)"
    read = f"{timed.reading_speed:,.0f} prompt tokens/s ({timed.evaluated:,} evaluated)"
    return f"{read}, {timed.writing_speed:,.1f} answer tokens/s ({usage.output_tokens:,} written)"
