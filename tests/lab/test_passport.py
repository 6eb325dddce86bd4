"""The curve and the recommended settings that a passport computes from results."""

import pytest

from packetgate.lab.fitting import wilson_interval
from packetgate.lab.passport import CaseResult, EvaluatedCall, Passport, fit_case_curves
from packetgate.state.base import Confidence

KIND = "model, calibrated"


def row(score: Confidence, *, right: bool, reads: bool = True) -> CaseResult:
    call = EvaluatedCall(
        tool="files.read", right=right, review=KIND, score=score, passed=score >= 0.7, only_reads=reads
    )
    return CaseResult(version="1", case="c", kind="acts", right=right, calls=(call,), seconds=2.0, evaluated=300)


def passport(*rows: CaseResult) -> Passport:
    return Passport(model="m", own_language=True, threshold=0.7, of=80, rows=rows, curves=fit_case_curves(rows))


def test_the_confidence_of_an_overconfident_model_is_lowered():
    rows = [row(0.9, right=at % 2 == 0) for at in range(30)] + [row(0.3, right=False)] * 20
    found = passport(*rows)
    assert found.curves[KIND].at(0.9) < 0.65
    assert (found.passed, found.review, found.recommended_threshold) == ((15, 30), "all", None)


@pytest.mark.parametrize("times", [1, 10])
def test_the_confidence_of_an_underconfident_model_is_raised_in_part(times: int):
    rows = [*[row(0.6, right=True)] * 22, *[row(0.55, right=True)] * 7, row(0.6, right=False)] * times
    curve = passport(*rows).curves[KIND]
    full_effect = curve.model_copy(update={"adds": 1.0})
    assert 0.6 < curve.at(0.6) < full_effect.at(0.6)
    assert curve.adds == pytest.approx({1: 30 / 130, 10: 300 / 400}[times])


def test_settings_are_recommended_from_enough_calls():
    few = passport(*[row(0.95, right=True)] * 19)
    assert (few.review, few.recommended_threshold, few.auroc, few.curves) == ("all", None, None, {})
    rows = [*[row(0.95, right=True)] * 24, row(0.95, right=False), *[row(0.6, right=False)] * 6]
    many = passport(*rows)
    assert many.review == "all"
    assert many.recommended_threshold is not None
    least, share = many.recommended_threshold
    assert share == (24, 25)
    assert str(share) == "24 of 25 right (80% to 99%)"
    assert many.curves[KIND].at(0.6) < least <= many.curves[KIND].at(0.95)
    assert passport(*rows[:25]).review == "risky"


def test_the_confidence_interval_is_wilsons():
    assert wilson_interval(0, 10) == pytest.approx((0.0, 0.2775), abs=1e-3)
    assert wilson_interval(24, 25) == pytest.approx((0.8046, 0.9929), abs=1e-3)
