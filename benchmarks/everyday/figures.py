"""Figures on what came of the requests: by server, and how far the confidence of calls can be believed."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, get_args

from benchmarks.everyday.asked import SERVERS
from benchmarks.everyday.judging import Outcome, Verdict, Wrong
from packetgate.lab.fitting import calibration_error, reliability

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
GOALS = {"well": 0.85, "wrong": 0.02}
"""At least so many well, at most so many wrong, from 0 to 1."""


def figures(verdicts: Sequence[Verdict]) -> Iterator[dict[str, Any]]:
    """Yield a line a server, and one of all."""
    for name in SERVERS:
        of_server = [one for one in verdicts if name in one.asked.servers]
        if of_server:
            yield _line(name, of_server)
    yield _line("all", verdicts)


def _line(name: str, verdicts: Sequence[Verdict]) -> dict[str, Any]:
    counted = Counter(one.outcome for one in verdicts)
    hows = Counter(one.wrong for one in verdicts if one.wrong)
    calls = [(call.confidence, one.outcome == "well") for one in verdicts for call in one.played.ran]
    bins, played = reliability(calls), [one.played for one in verdicts]
    return {
        "name": name,
        "requests": len(verdicts),
        **{outcome: counted[outcome] for outcome in OUTCOMES},
        **{f"wrong_{how}": hows[how] for how in get_args(Wrong) if how},
        "picked": sum(one.played.picked and one.outcome == "well" for one in verdicts),
        "questions": sum(one.played.questions for one in verdicts),
        "evaluated": sum(one.spent.input_tokens - one.spent.cached_tokens for one in played),
        "written": sum(one.spent.output_tokens for one in played),
        "seconds": round(sum(one.seconds for one in played), 1),
        "calls": len(calls),
        "ece": round(calibration_error(bins), 4),
        "bins": [asdict(one) for one in bins],
    }


def explained(one: Verdict) -> dict[str, Any]:
    """Return what was said, done and found amiss of a request."""
    return {
        "id": one.asked.id,
        "servers": one.asked.servers,
        "outcome": one.outcome,
        "wrong": one.wrong,
        "say": one.asked.say,
        "problems": one.problems,
        "picked": one.played.picked,
        "calls": [[asdict(call) for call in calls] for calls in one.played.turns],
        "answers": one.played.answers,
        "evaluated": one.played.spent.input_tokens - one.played.spent.cached_tokens,
        "written": one.played.spent.output_tokens,
        "seconds": round(one.played.seconds, 1),
    }
