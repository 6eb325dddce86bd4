"""A past packet as one page: each visit of a stage with its prompts, or why there are none to show."""

from dataclasses import dataclass
from datetime import timedelta

from jinja2 import ChoiceLoader, PackageLoader

from packetgate.connectors.trace.finding import Past
from packetgate.connectors.trace.timeline import Span, Visit, chart, visits
from packetgate.graph.records.prompts import StagePrompts
from packetgate.state.html.rendering import environment, facts
from packetgate.state.routing import ToolRouting
from packetgate.state.sections import AuditEntry

UNKNOWN = "The prompts were not looked up, as this page was made from a file: they are kept where the turn ran."
GONE = "The prompts are not on record: they are kept for PACKETGATE_PROMPT_DAYS days, and not at all where that is 0."
SILENT = "Nothing was sent to the model."
REFLEX = "No model was asked: reflexes decided."

SLACK = timedelta(milliseconds=1)
"""A log entry is written a moment before or after what it tells of."""


@dataclass(frozen=True)
class Row:
    """A visit of a stage on the timeline."""

    visit: Visit
    bar: Span
    offset_ms: float
    audit: tuple[AuditEntry, ...]
    """What the audit trail got while the stage ran."""
    prompts: list[StagePrompts]
    why_without_prompts: str
    """Why there are no prompts to show; empty where none are to be expected."""


def page(past: Past) -> str:
    """Return the page as HTML. Blocking."""
    stages = visits(past.packet.reasoning.reflection_log)
    drawn, placed = chart(stages), by_visit(past.prompts or (), stages)
    rows = [
        _row(past, stage, bar, stage.ms_after(stages[0]), prompts)
        for stage, bar, prompts in zip(stages, drawn.bars, placed, strict=False)
    ]
    templates = environment(
        ChoiceLoader([PackageLoader("packetgate.connectors.trace"), PackageLoader("packetgate.state.html")])
    )
    shown = templates.get_template("page.html").render(
        past=past,
        facts=facts(past.packet),
        rows=rows,
        chart=drawn,
        unplaced=placed[-1],
        misses=_misses(past.packet.tool_routing),
    )
    return f"{shown.strip()}\n"


def _row(past: Past, stage: Visit, bar: Span, offset_ms: float, prompts: list[StagePrompts]) -> Row:
    began, ended = stage.began - SLACK, stage.ended + SLACK
    audit = tuple(entry for entry in past.packet.governance.audit if began <= entry.at <= ended)
    return Row(stage, bar, offset_ms, audit, prompts, why_without(stage, past.prompts))


def _misses(routing: ToolRouting | None) -> list[tuple[str, tuple[str, ...]]]:
    if routing is None:
        return []
    return [
        ("Selected, but not on the palette", routing.missed_tools),
        ("Near to what was wanted", routing.suggestions),
        ("Could also have served", tuple(one.line for one in routing.alternative_tools)),
        ("Corrected", tuple(f"{one.tool_name}: {one.message}" for one in routing.corrections)),
    ]


def by_visit(prompts: tuple[StagePrompts, ...], stages: tuple[Visit, ...]) -> list[list[StagePrompts]]:
    """Return what was said during each visit, in order, and last what belongs to none: its stage did not end."""
    placed: list[list[StagePrompts]] = [[] for _ in range(len(stages) + 1)]
    for one in prompts:
        within = [at for at, stage in enumerate(stages) if stage.stage == one.stage and one.at <= stage.ended]
        placed[within[0] if within else -1].append(one)
    return placed


def why_without(stage: Visit, of_turn: tuple[StagePrompts, ...] | None) -> str:
    """Return why there are no prompts of a stage; empty for one that asks no model."""
    deciders = {entry.decided_by for entry in stage.entries}
    if "model" in deciders or any(entry.is_fallback for entry in stage.entries):
        return UNKNOWN if of_turn is None else SILENT if of_turn else GONE
    return REFLEX if "reflex" in deciders else ""
