"""Calibration curves from users' answers, and the answers that the curves fit."""

from random import Random

import pytest
from langgraph.store.memory import InMemoryStore

from packetgate.lab.fitting import MIN_ANSWERS, brier_score, fit_curves, held_out_confidences
from packetgate.tools.calibration import AnsweredCall, Calibration, Curve, read_calibration, save_calibration

KIND = "reflex, rule"


def answers(truth: float, count: int = 400) -> list[AnsweredCall]:
    """Answers about reviews with confidences of 0.3 to 0.95 that are right `truth` times as often as they claim."""
    chance = Random(7)
    scores = [chance.choice([0.3, 0.5, 0.6, 0.8, 0.95]) for _ in range(count)]
    return [AnsweredCall(KIND, score, chance.random() < score * truth) for score in scores]


def test_a_curve_improves_an_overconfident_review_on_held_out_answers() -> None:
    given = answers(0.7)
    assert brier_score(held_out_confidences(given)) < brier_score([(one.score, one.right) for one in given])
    curve = fit_curves(given).curves[KIND]
    assert curve.answers == 400
    assert [curve.at(score) for score in (0.3, 0.6, 0.95)] == sorted(curve.at(score) for score in (0.3, 0.6, 0.95))
    for score in (0.3, 0.6, 0.95):
        held = [one.right for one in given if one.score == score]
        assert curve.at(score) == pytest.approx(sum(held) / len(held), abs=0.1)


def test_a_calibrated_review_changes_little() -> None:
    curve = fit_curves(answers(1.0)).curves[KIND]
    assert [curve.at(score) for score in (0.3, 0.6, 0.95)] == pytest.approx([0.3, 0.6, 0.95], abs=0.08)


@pytest.mark.parametrize("given", [[], answers(0.7, MIN_ANSWERS - 1), [AnsweredCall(KIND, 0.9, True)] * 100])
def test_no_curve_from_few_or_one_sided_answers(given: list[AnsweredCall]) -> None:
    assert fit_curves(given).curves == {}


def test_a_curve_never_swaps_two_confidences() -> None:
    upside_down = [AnsweredCall(KIND, 0.9, False)] * 50 + [AnsweredCall(KIND, 0.1, True)] * 50
    curve = fit_curves(upside_down).curves[KIND]
    assert curve.at(0.9) >= curve.at(0.1)


async def test_a_calibration_is_stored() -> None:
    store = InMemoryStore()
    assert (await read_calibration(store)).curves == {}
    calibration = Calibration(curves={KIND: Curve(slope=0.5, offset=0.0, answers=30)})
    await save_calibration(store, calibration)
    assert await read_calibration(store) == calibration
