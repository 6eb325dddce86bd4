"""Compute the metrics of the requests by server: outcomes, and the calibration of the calls' confidence."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, get_args

from benchmarks.everyday.cases import SERVERS
from benchmarks.everyday.grading import Grade, Outcome, WrongKind
from packetgate.lab.fitting import calibration_error, reliability

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
GOALS = {"well": 0.85, "wrong": 0.01}
"""Minimum share of requests with the outcome well, and maximum share with the outcome wrong."""


def figures(grades: Sequence[Grade]) -> Iterator[dict[str, Any]]:
    """Yield a line for each server, and one for all requests."""
    for name in SERVERS:
        of_server = [grade for grade in grades if name in grade.request.servers]
        if of_server:
            yield _line(name, of_server)
    yield _line("all", grades)


def _line(name: str, grades: Sequence[Grade]) -> dict[str, Any]:
    outcomes = Counter(grade.outcome for grade in grades)
    wrong_kinds = Counter(grade.wrong_kind for grade in grades if grade.wrong_kind)
    calls = [(call.confidence, grade.outcome == "well") for grade in grades for call in grade.transcript.ran]
    bins, transcripts = reliability(calls), [grade.transcript for grade in grades]
    return {
        "name": name,
        "requests": len(grades),
        **{outcome: outcomes[outcome] for outcome in OUTCOMES},
        **{f"wrong_{kind}": wrong_kinds[kind] for kind in get_args(WrongKind) if kind},
        "picked": sum(grade.transcript.picked and grade.outcome == "well" for grade in grades),
        "questions": sum(one.questions for one in transcripts),
        "evaluated": sum(one.usage.input_tokens - one.usage.cached_tokens for one in transcripts),
        "written": sum(one.usage.output_tokens for one in transcripts),
        "seconds": round(sum(one.seconds for one in transcripts), 1),
        "calls": len(calls),
        "ece": round(calibration_error(bins), 4),
        "bins": [asdict(one) for one in bins],
    }


def explanation(grade: Grade) -> dict[str, Any]:
    """Return the messages, calls, answers and problems of a request."""
    return {
        "id": grade.request.id,
        "servers": grade.request.servers,
        "outcome": grade.outcome,
        "wrong": grade.wrong_kind,
        "say": grade.request.say,
        "problems": grade.problems,
        "picked": grade.transcript.picked,
        "calls": [[asdict(call) for call in calls] for calls in grade.transcript.turns],
        "answers": grade.transcript.answers,
        "evaluated": grade.transcript.usage.input_tokens - grade.transcript.usage.cached_tokens,
        "written": grade.transcript.usage.output_tokens,
        "seconds": round(grade.transcript.seconds, 1),
    }
