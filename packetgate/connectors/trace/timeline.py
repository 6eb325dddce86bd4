"""When each stage ran: from the times that the packet's log holds."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from packetgate.state.sections import Reflection

LONG_MS = 500.0
"""A pause of this length, and of half of what the stages took, is drawn as a break: it would dwarf them."""
BREAK = 5.0
"""Width of a break, in percent of the chart; all of them together take no more than `BREAKS`."""
BREAKS = 30.0


@dataclass(frozen=True)
class Visit:
    """A stage at work, once."""

    stage: str
    entries: tuple[Reflection, ...]
    began: datetime
    took_ms: float
    paused_ms: float
    """How long nothing had run when it began."""

    @property
    def ended(self) -> datetime:
        """When the next stage could begin."""
        return self.began + timedelta(milliseconds=self.took_ms)

    @property
    def decider(self) -> str:
        """Who decided: `model`, `reflex`, `fallback` where reflexes stood in, or `rule`."""
        stood_in = any(entry.is_fallback for entry in self.entries)
        return "fallback" if stood_in else self.entries[0].decided_by or "rule"

    def ms_after(self, first: "Visit") -> float:
        """Return how long after another it began."""
        return (self.began - first.began) / timedelta(milliseconds=1)


@dataclass(frozen=True)
class Span:
    """A place on the chart, in percent of its width."""

    left: float
    width: float


@dataclass(frozen=True)
class Chart:
    """Where everything is drawn, from left to right."""

    bars: tuple[Span, ...]
    """One for each visit."""
    breaks: tuple[Span, ...]
    """Pauses that are drawn shorter than they were."""
    worked_ms: float
    paused_ms: float


def visits(log: tuple[Reflection, ...]) -> tuple[Visit, ...]:
    """Return the stages in the order in which they ran.

    A stage's first entry carries its time, and was written as it ended; what else it wrote follows without one.
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


def chart(stages: tuple[Visit, ...]) -> Chart:
    """Return where each visit is drawn: to scale, but for long pauses."""
    worked = sum(stage.took_ms for stage in stages)
    long = [stage.paused_ms >= max(LONG_MS, worked / 2) for stage in stages]
    gap = min(BREAK, BREAKS / max(1, sum(long)))
    drawn = worked + sum(stage.paused_ms for stage, is_long in zip(stages, long, strict=True) if not is_long)
    scale = (100 - gap * sum(long)) / (drawn or 1)
    at, bars, breaks = 0.0, [], []
    for stage, is_long in zip(stages, long, strict=True):
        if is_long:
            breaks.append(Span(at, gap))
        at += gap if is_long else stage.paused_ms * scale
        bars.append(Span(at, stage.took_ms * scale))
        at += stage.took_ms * scale
    return Chart(tuple(bars), tuple(breaks), worked, sum(stage.paused_ms for stage in stages))
