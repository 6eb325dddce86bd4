"""Compute the metrics of a set's cases."""

from collections.abc import Mapping, Sequence

from benchmarks.real_models.playing import Played
from benchmarks.real_models.readings import reading_of
from benchmarks.selection.cases import Case
from benchmarks.selection.figures import Figures, Outcome, auroc, is_right, names_right
from packetgate.lab.fitting import calibration_error, reliability


def figures(cases: Mapping[str, Case], rows: Sequence[Played], *, reviewed: bool) -> Figures:
    """Return the metrics of one model, way and set; None for a metric without cases.

    Args:
        cases: the cases by id.
        rows: one row per case.
        reviewed: whether only calls that passed the gate ran; otherwise, all calls ran.
    """
    right = [_is_right(cases[row.id], row) for row in rows]
    ran = [any(row.passed) if reviewed else bool(row.calls) for row in rows]
    wanted = [(ok, row) for ok, row in zip(right, rows, strict=True) if _is_wanted(cases[row.id])]
    unserved = [(row, did) for row, did in zip(rows, ran, strict=True) if not _is_wanted(cases[row.id])]
    judged = [(min(row.confidences), ok) for ok, row in zip(right, rows, strict=True) if row.confidences]
    passed = [ok for ok, did in zip(right, ran, strict=True) if did]
    read = [reading_of(row) for row, did in zip(rows, ran, strict=True) if did and reviewed]
    correct = sum(right)
    return {
        "cases": len(rows),
        "wanted": len(wanted),
        "right": sum(ok for ok, _ in wanted),
        "right_ran": sum(passed),
        "exact": _share(sum(ok for ok, _ in wanted), len(wanted)),
        "called_where_none_serves": _share(sum(bool(row.calls) for row, _ in unserved), len(unserved)),
        "ran": sum(ran),
        "right_of_those_that_ran": _share(sum(passed), len(passed)),
        "right_of_those_that_ran_as_read": _share(sum(one.is_right for one in read if one), len(read))
        if all(read)
        else None,
        "right_that_ran": _share(sum(passed), correct),
        "wrong_ran": _share(len(passed) - sum(passed), len(rows)),
        "asked": _share(sum(bool(row.calls) and not did for row, did in zip(rows, ran, strict=True)), len(rows)),
        "auroc": auroc([sure for sure, ok in judged if ok], [sure for sure, ok in judged if not ok]),
        "ece": calibration_error(reliability(judged)) if judged else None,
        "unknown": sum(row.unknown for row in rows),
        "refused": sum(row.refused for row in rows),
        "evaluated": round(sum(row.evaluated for row in rows) / len(rows)) if rows else None,
        "written": round(sum(row.written for row in rows) / len(rows)) if rows else None,
        "seconds": round(sum(row.seconds for row in rows) / len(rows), 1) if rows else None,
    }


def beside(answers: Sequence[Sequence[Played]]) -> Mapping[str, float | int | None]:
    """Return the ratios of Packetgate's cost to that of plain tool calling; times are from cases measured in one run.

    Args:
        answers: the answers of each case, by plain tool calling and through Packetgate.
    """
    timed = [(plain, ours) for plain, ours in answers if plain.run == ours.run]
    return {
        "cases": len(answers),
        "evaluated": _ratio([(plain.evaluated, ours.evaluated) for plain, ours in answers]),
        "written": _ratio([(plain.written, ours.written) for plain, ours in answers]),
        "timed": len(timed),
        "seconds": _ratio([(plain.seconds, ours.seconds) for plain, ours in timed]),
    }


def _ratio(pairs: Sequence[tuple[float, float]]) -> float | None:
    plain = sum(one for one, _ in pairs)
    return sum(one for _, one in pairs) / plain if plain else None


def _is_wanted(case: Case) -> bool:
    return bool(case.expected) and not case.asks


def _is_right(case: Case, row: Played) -> bool:
    outcome = Outcome(id=row.id, action=row.action, calls=row.calls, relevance=0)
    named_only = any(one.arguments is None for one in case.expected)
    return not case.asks and names_right(case, outcome) if named_only else is_right(case, outcome)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
