"""Show a past packet: in the terminal, or as a page with a timeline of its stages and their prompts."""

import asyncio
import sys
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate
from pathlib import Path

from rich.text import Text

from packetgate.connectors import rendering
from packetgate.connectors.trace.finding import LAST, SHORTEST, Past, find, is_packet_id, open_archive
from packetgate.graph.records.prompts import StagePrompts
from packetgate.graph.settings import Settings
from packetgate.state.errors import PacketError
from packetgate.state.html.rendering import environment, facts
from packetgate.state.packet import read_packet
from packetgate.state.printing import printable
from packetgate.state.routing import ToolRouting
from packetgate.state.sections import AuditEntry, Reflection


@dataclass(frozen=True)
class Visit:
    """One run of a stage."""

    stage: str
    entries: tuple[Reflection, ...]
    began: datetime
    took_ms: float
    paused_ms: float
    """Milliseconds since the previous stage ended."""

    @property
    def ended(self) -> datetime:
        """The end of the visit."""
        return self.began + timedelta(milliseconds=self.took_ms)

    @property
    def decider(self) -> str:
        """Who decided: `model`, `reflex`, `fallback` where reflexes stood in, or `rule`."""
        stood_in = any(entry.is_fallback for entry in self.entries)
        return "fallback" if stood_in else self.entries[0].decided_by or "rule"

    def ms_after(self, first: "Visit") -> float:
        """Return the milliseconds since another visit began."""
        return (self.began - first.began) / timedelta(milliseconds=1)


@dataclass(frozen=True)
class Span:
    """A position on the chart, in percent of its width."""

    left: float
    width: float


def visits(log: tuple[Reflection, ...]) -> tuple[Visit, ...]:
    """Return the stages in the order in which they ran.

    A stage's first entry has its duration and was written at its end; its other entries have none.
    """
    groups: list[list[Reflection]] = []
    for entry in log:
        if groups and groups[-1][0].step == entry.step and not entry.latency_ms:
            groups[-1].append(entry)
        else:
            groups.append([entry])
    found: list[Visit] = []
    for group in groups:
        took, began = group[0].latency_ms, group[0].at - timedelta(milliseconds=group[0].latency_ms)
        earliest = found[-1].ended if found else began
        began = max(began, earliest)
        paused = (began - earliest) / timedelta(milliseconds=1)
        found.append(Visit(group[0].step, tuple(group), began, took, paused))
    return tuple(found)


def bars(stages: tuple[Visit, ...]) -> tuple[Span, ...]:
    """Return the bars of the visits: one after the other, to scale, without pauses."""
    scale = 100 / (sum(stage.took_ms for stage in stages) or 1)
    ends = [0.0, *accumulate(stage.took_ms * scale for stage in stages)]
    return tuple(Span(left, stage.took_ms * scale) for left, stage in zip(ends, stages, strict=False))


UNKNOWN = "The prompts were not looked up, as this page was made from a file: they are kept where the turn ran."
GONE = "The prompts are not on record: they are kept for PACKETGATE_PROMPT_DAYS days, and not at all where that is 0."
SILENT = "Nothing was sent to the model."
REFLEX = "No model was asked: reflexes decided."

SLACK = timedelta(milliseconds=1)
"""Tolerance for log entries, which are written a moment before or after their event."""


@dataclass(frozen=True)
class Row:
    """A row of the timeline."""

    visit: Visit
    bar: Span
    offset_ms: float
    audit: tuple[AuditEntry, ...]
    """Audit entries from while the stage ran."""
    prompts: list[StagePrompts]
    why_without_prompts: str
    """Why there are no prompts; empty if none are expected."""


def page(past: Past) -> str:
    """Return the page as HTML. Blocking."""
    from jinja2 import ChoiceLoader, PackageLoader

    stages = visits(past.packet.reasoning.reflection_log)
    placed = by_visit(past.prompts or (), stages)
    rows = [
        _row(past, stage, bar, stage.ms_after(stages[0]), prompts)
        for stage, bar, prompts in zip(stages, bars(stages), placed, strict=False)
    ]
    templates = environment(
        ChoiceLoader([PackageLoader("packetgate.connectors.trace"), PackageLoader("packetgate.state.html")])
    )
    shown = templates.get_template("page.html").render(
        past=past,
        facts=facts(past.packet),
        rows=rows,
        worked_ms=sum(stage.took_ms for stage in stages),
        paused_ms=sum(stage.paused_ms for stage in stages),
        unplaced=placed[-1],
        misses=_misses(past.packet.tool_routing),
    )
    return f"{shown.strip()}\n"


def _row(past: Past, stage: Visit, bar: Span, offset_ms: float, prompts: list[StagePrompts]) -> Row:
    began, ended = stage.began - SLACK, stage.ended + SLACK
    audit = tuple(entry for entry in past.packet.governance.audit if began <= entry.at <= ended)
    return Row(stage, bar, offset_ms, audit, prompts, _why_without(stage, past.prompts))


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
    """Return the prompts of each visit, and last those of a stage that did not end."""
    placed: list[list[StagePrompts]] = [[] for _ in range(len(stages) + 1)]
    for one in prompts:
        within = [at for at, stage in enumerate(stages) if stage.stage == one.stage and one.at <= stage.ended]
        placed[within[0] if within else -1].append(one)
    return placed


def _why_without(stage: Visit, of_turn: tuple[StagePrompts, ...] | None) -> str:
    deciders = {entry.decided_by for entry in stage.entries}
    if "model" in deciders or any(entry.is_fallback for entry in stage.entries):
        return UNKNOWN if of_turn is None else SILENT if of_turn else GONE
    return REFLEX if "reflex" in deciders else ""


async def show(
    settings: Settings, wanted: str, session: str | None, html: Path | None, *, force: bool, as_json: bool
) -> int:
    """Print a packet's journey or its JSON, and save its page where one is wanted.

    Raises:
        PacketError, SessionError: there is no such packet.
        ConfigError: where packets are kept cannot be opened, or the page cannot be written.
    """
    past = await _past(settings, wanted, session)
    if html is not None:
        await asyncio.to_thread(lambda: rendering.save(html, page(past), force=force))
        rendering.console(stderr=True).print(Text(f"saved {html}", style="dim"))
    if as_json:
        sys.stdout.write(past.packet.model_dump_json(indent=2) + "\n")
    else:
        _print(past)
    return 0


async def _past(settings: Settings, wanted: str, session: str | None) -> Past:
    if session is None and (wanted == "-" or await asyncio.to_thread(_is_readable, wanted)):
        return Past(read_packet(await asyncio.to_thread(_read, wanted)))
    if wanted != LAST and not is_packet_id(wanted):
        raise PacketError(
            f"{printable(wanted)[:200]}: neither a file nor a packet's id: give {SHORTEST} or more of its characters, "
            "or `last`"
        )
    async with open_archive(settings) as archive:
        return await find(archive, wanted, session)


def _is_readable(file: str) -> bool:
    try:
        return Path(file).exists() and not Path(file).is_dir()
    except OSError:  # such as a name longer than names may be
        return False


def _read(file: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise PacketError(f"{file}: cannot be read: {error.strerror}") from error


def _print(past: Past) -> None:
    out = rendering.console()
    out.print(Text(printable(past.packet.content.original_prompt), style="bold"))
    if past.packet.response.candidate:
        out.print(rendering.answer(past.packet))
    if past.question is not None:
        out.print(rendering.question(past.question))
    out.print()
    out.print(rendering.journey(past.packet))
