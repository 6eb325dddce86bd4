"""The regression benchmark: it reports parts that cannot run, and a comparison names the metrics that got worse."""

import json
from pathlib import Path

import pytest

from benchmarks import fence


def rows(**values: float) -> dict[str, object]:
    return {"rows": {"one": values}, "seconds": 1}


@pytest.mark.parametrize(
    ("part", "before", "after", "fell"),
    [
        ("found", {"right": 5}, {"right": 4}, True),
        ("found", {"right": 4}, {"right": 5}, False),
        ("safety", {"harmed_off": 0}, {"harmed_off": 1}, True),
        ("safety", {"tasks_done_off": 8, "kinds": 1}, {"tasks_done_off": 8, "kinds": 2}, False),
        ("overhead", {"ratio": 1.0}, {"ratio": 1.05}, False),
        ("overhead", {"ratio": 1.0}, {"ratio": 1.2}, True),
        ("ranking", {"recall@1": 0.5}, {}, True),
    ],
)
def test_a_comparison_names_the_figures_that_fell(
    part: str, before: dict[str, float], after: dict[str, float], fell: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    sides = [{"commit": name, "parts": {part: rows(**values)}} for name, values in (("a", before), ("b", after))]
    assert fence.compare(*sides) is fell
    assert ("FELL" in capsys.readouterr().out) is fell


def test_parts_are_added_to_the_file_of_the_same_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PACKETGATE_DATA", raising=False)
    out = tmp_path / "fence.json"
    for part in ("ranking", "crossing"):
        fence.main([part, "--out", str(out)])
    stored = json.loads(out.read_text())["parts"]
    assert "--data" in stored["ranking"]["cannot_run"]
    assert stored["crossing"]["rows"]["packetgate"]["functions"] > 100
