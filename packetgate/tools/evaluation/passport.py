"""A model's passport: what came of its cases, how far its reviews can be believed, and the settings that fit."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from pydantic import Field

from packetgate.state.base import Confidence, Section, now
from packetgate.tools.usage.calibration import Answered, Calibration, Curve, auroc, interval, measured

ENOUGH_RIGHT = 0.95
FEWEST = 20
"""Calls below which no setting is told by their share."""
NEVER = 0.5
"""Confidence up to which a review does not approve, whatever is made of it afterwards."""


class PlayedCall(Section):
    """A call that was chosen for a case."""

    tool: str
    right: bool
    review: str
    """Who reviewed it, and by what kind of confidence: the name of its curve."""
    score: Confidence
    """How sure the review was, before any curve."""
    passed: bool
    """Whether it passed the gate so."""
    only_reads: bool
    """Whether `review = "risky"` would spare it the review."""


class Played(Section):
    """What came of a case."""

    version: str
    """Of the cases, and of what confidences are weighed with."""
    case: str
    kind: str
    right: bool
    calls: tuple[PlayedCall, ...] = ()
    evaluated: int = 0
    """Tokens of prompts that were not known from an earlier one."""
    written: int = 0
    seconds: float = 0.0
    problem: str = ""
    """Why the model could not be asked."""


class Share(NamedTuple):
    """How many of some calls were right."""

    right: int
    of: int

    def __str__(self) -> str:
        """Return it in words, with the interval that so few leave."""
        low, high = interval(self.right, self.of) if self.of else (0, 1)
        return f"{self.right} of {self.of} right ({low:.0%} to {high:.0%})" if self.of else "none"


class Figures(NamedTuple):
    """Of some cases, how many there are, were right, had a wrong call, and had one that passed the gate."""

    cases: int
    right: int
    wrong_call: int
    wrong_call_passed: int


class Passport(Section):
    """What is known of a model by its cases, of which there is at least one."""

    version: str
    at: datetime = Field(default_factory=now)
    model: str
    own_language: bool
    """Whether it is offered tools and calls them; else it is asked in a form of JSON."""
    threshold: Confidence
    """Where the gate stood."""
    of: int
    """How many cases there are; fewer may have been played."""
    rows: tuple[Played, ...]
    curves: dict[str, Curve]

    @property
    def answers(self) -> list[tuple[float, bool]]:
        """Of each call, how sure its review was, and whether it was right."""
        return [(call.score, call.right) for row in self.rows for call in row.calls]

    @property
    def auroc(self) -> float | None:
        """How often a right call has the higher confidence than a wrong one."""
        return auroc([one for one, right in self.answers if right], [one for one, right in self.answers if not right])

    @property
    def passed(self) -> Share:
        """The calls that passed the gate, before any curve."""
        return _share(call.right for row in self.rows for call in row.calls if call.passed)

    @property
    def reads(self) -> Share:
        """The calls that `review = "risky"` would spare the review."""
        return _share(call.right for row in self.rows for call in row.calls if call.only_reads)

    @property
    def review(self) -> str:
        """The setting `review` that fits."""
        return "risky" if self.reads.of >= FEWEST and self.reads.right >= ENOUGH_RIGHT * self.reads.of else "all"

    @property
    def fitting(self) -> tuple[float, Share] | None:
        """The lowest threshold from which on enough were right, by the curve; None: so few calls cannot tell."""
        held = Calibration(curves=self.curves)
        calls = [call for row in self.rows for call in row.calls if call.score >= NEVER]
        sure = [(held.confidence(call.review, call.score), call.right) for call in calls]
        for least in sorted({int(one * 100) / 100 for one, _ in sure}):
            share = _share(right for one, right in sure if one >= least)
            if share.of >= FEWEST and share.right >= ENOUGH_RIGHT * share.of:
                return least, share
        return None

    @property
    def believed(self) -> str:
        """How far its reviews can be believed, in a line."""
        area = "" if self.auroc is None else f", AUROC {self.auroc:.2f} over {len(self.answers)}"
        return f"of the calls past the gate {self.passed}{area}"

    def figures(self, kind: str = "") -> Figures:
        """Return the figures of a kind, or of all cases."""
        rows = [row for row in self.rows if kind in {row.kind, ""}]
        wrong = [[call for call in row.calls if not call.right] for row in rows]
        passed = sum(any(call.passed for call in calls) for calls in wrong)
        return Figures(len(rows), sum(row.right for row in rows), sum(map(bool, wrong)), passed)

    def mean(self, what: str) -> float:
        """Return the mean of a number over the cases for which the model was asked."""
        values = [getattr(row, what) for row in self.rows if not row.problem]
        return sum(values) / len(values) if values else 0.0


def curves_of(rows: Sequence[Played]) -> dict[str, Curve]:
    """Return what a model's confidences come to, by what came of its cases."""
    return measured([Answered(call.review, call.score, call.right) for row in rows for call in row.calls]).curves


def _share(right: Iterable[bool]) -> Share:
    found = list(right)
    return Share(sum(found), len(found))
