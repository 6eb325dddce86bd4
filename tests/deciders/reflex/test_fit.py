"""How closely tools are looked at: the judge is asked of those it may bring to the front, and so are arguments."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from support.packets import FILES

from deciders.reflex import fit
from deciders.reflex.serving import load_fitted, score
from tools.spec.tool_spec import ToolSpec

NOW = datetime(2026, 1, 15, 9, tzinfo=UTC)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note of which tools the judge is asked."""
    names: list[str] = []

    def noting(request: str, specs: Sequence[ToolSpec]) -> list[float]:
        names.extend(spec.name for spec in specs)
        return [0.5] * len(specs)

    monkeypatch.setattr(fit, "judge", noting)
    return names


def test_a_tool_far_behind_is_not_judged(asked: list[str]):
    fits = fit.fits_of("files.read_file notes.txt", FILES, NOW)
    assert fits[0].spec.name == "files.read_file"
    assert asked == ["files.read_file"]
    assert [one.spec.name for one in fits] == ["files.read_file"]


def test_tools_near_to_each_other_are_all_judged(asked: list[str]):
    fit.fits_of("now for the file notes.txt", FILES, NOW)
    assert {"files.read_file", "files.delete_file"} <= {*asked}


def test_a_tool_asked_about_is_looked_at_however_far_it_is_behind():
    fits = fit.fits_of("files.read_file notes.txt", FILES, NOW, also="clock.convert_time")
    assert [one.spec.name for one in fits] == ["files.read_file", "clock.convert_time"]
    assert fits[1].fillings


@pytest.mark.parametrize("text", ["What does recipe.md say?", "Who wrote plan.txt?", "which folder holds a.txt"])
def test_a_question_is_never_for_a_tool_whose_name_says_that_it_changes_something(text: str):
    fits = fit.fits_of(text, FILES, NOW)
    assert {one.spec.name for one in fits}.isdisjoint({"files.write_file", "files.delete_file"})
    wished = fit.fits_of(text, FILES, NOW, also="files.delete_file")
    assert "files.delete_file" in {one.spec.name for one in wished}


def test_no_judgement_reaches_further_than_the_tools_that_are_judged():
    weight = load_fitted().serving.judged
    seen = fit.Signals()
    best, worst = (score(seen._replace(judged=odds)) for odds in (7.0, -7.0))
    assert best - worst == pytest.approx(14 * weight)
    assert best - worst < fit.REACH
