"""The first call for a request is in doubt only where the judge was measured: the tool serves the request by itself."""

from typing import Any

import pytest
from support.packets import TRAIN, tool

from packetgate.reflex.judge.calls import MAX_CHARS
from packetgate.reflex.judge.first_calls import first_call_probability

FORECAST = tool("weather.forecast", "city", description="Get the forecast for a city.", city={"type": "string"})
GHENT = "Get the forecast for Ghent"
TRIP = "Plan my trip to Verona: look for a hotel, then find trains from Basel"


@pytest.mark.parametrize(
    ("words", "call", "in_doubt"),
    [
        (GHENT, (FORECAST, {"city": "Ghent"}), False),
        (GHENT, (FORECAST, {"city": "the forecast"}), True),
        (GHENT, (TRAIN, {"origin": "Ghent", "destination": "forecast"}), False),
        (TRIP, (FORECAST, {"city": "Verona"}), False),
        (GHENT.ljust(MAX_CHARS + 1, "."), (FORECAST, {"city": "the forecast"}), False),
    ],
    ids=["right", "a wrong value", "another tool", "a step on the way", "a long request"],
)
def test_only_a_measured_call_is_in_doubt(words: str, call: tuple[Any, dict[str, Any]], *, in_doubt: bool):
    probability = first_call_probability(words, *call, 0.7)
    assert (probability is not None) == in_doubt
    assert probability is None or probability < 0.5
