"""The timeline: every visit of a stage as a bar, which opens to what it decided and what it said to its model."""

from datetime import timedelta

from connectors.trace import sections
from connectors.trace.finding import Past
from connectors.trace.prompts import by_visit, prompts, said
from connectors.trace.timeline import Chart, Span, Visit, chart, visits
from graph.records.prompts import StagePrompts
from state.html.journey import GATED
from state.html.markup import Html, element, joined, name
from state.html.parts import confidence, duration
from state.packet import CognitionPacket
from state.sections import AuditEntry, Reflection

SLACK = timedelta(milliseconds=1)
"""A log entry is written a moment before or after what it tells of."""


def timeline(past: Past) -> Html | None:
    """Return the stages' bars, to scale; None for a packet that passed none."""
    stages = visits(past.packet.reasoning.reflection_log)
    if not stages:
        return None
    drawn, placed = chart(stages), by_visit(past.heard or (), stages)
    paused = f", {duration(drawn.paused_ms)} between them" if drawn.paused_ms else ""
    breaks = " Hatched: a pause, shorter than it was." if drawn.breaks else ""
    rows = [
        _visit(past, stage, _lane(drawn, bar, _decider(stage)), stage.ms_after(stages[0]), heard)
        for stage, bar, heard in zip(stages, drawn.bars, placed, strict=False)
    ]
    beside = element("div", element("h3", "Said by a stage that did not end"), said(placed[-1])) if placed[-1] else None
    return element(
        "section",
        element("h2", "Timeline"),
        element("p", f"{duration(drawn.worked_ms)} in {len(stages)} stages{paused}.{breaks}", kind="quiet"),
        _legend(),
        element("div", *rows, kind="timeline"),
        beside,
    )


def _visit(past: Past, stage: Visit, lane: Html, offset_ms: float, heard: list[StagePrompts]) -> Html:
    summary = element(
        "summary",
        element("span", name(stage.stage), kind="name"),
        lane,
        element("span", f"+{duration(offset_ms)}", kind="offset", title="since the turn began"),
        element("span", duration(stage.took_ms), kind="took"),
    )
    content = (
        *(_entry(entry) for entry in stage.entries),
        sections.trail(_noted(past.packet, stage)),
        prompts(heard, stage, past.heard),
    )
    return element("details", summary, element("div", *content, kind="told"), kind="visit")


def _entry(entry: Reflection) -> Html:
    by = {"model": "Decided by a model", "reflex": "Decided by reflexes", None: "Decided by rules"}[entry.decided_by]
    instead = ", standing in for the model" if entry.is_fallback else ""
    sure = confidence(entry.confidence, entry.confidence_source, gated=entry.step == GATED)
    source = f" {entry.confidence_source.replace('_', ' ')}" if sure and entry.confidence_source else None
    facts = element(
        "p", f"{by}{instead} at ", sections.moment(entry.at), " " if sure else None, sure, source, kind="quiet"
    )
    return joined((element("p", entry.summary), facts))


def _noted(packet: CognitionPacket, stage: Visit) -> list[AuditEntry]:
    """Return what the audit trail got while the stage ran."""
    began, ended = stage.began - SLACK, stage.ended + SLACK
    return [entry for entry in packet.governance.audit if began <= entry.at <= ended]


def _lane(drawn: Chart, bar: Span, kind: str) -> Html:
    breaks = (element("i", kind="break", style=_placed(one)) for one in drawn.breaks)
    return element("span", *breaks, element("b", kind=kind, style=_placed(bar)), kind="lane", aria_hidden="true")


def _legend() -> Html:
    kinds = {"model": "a model decided", "reflex": "reflexes decided", "fallback": "reflexes stood in", "rule": "rules"}
    return element(
        "p", *(element("span", element("b", kind=kind), label) for kind, label in kinds.items()), kind="legend"
    )


def _decider(stage: Visit) -> str:
    fallback = any(entry.is_fallback for entry in stage.entries)
    return "fallback" if fallback else stage.entries[0].decided_by or "rule"


def _placed(span: Span) -> str:
    return f"left:{span.left:.3f}%;width:{span.width:.3f}%"
