"""The probability that the first call that an agent makes for a request is right, where that was measured.

The judge learned from requests that one call serves. Many calls of agents are steps on the way: there, its log odds say
little. They were measured to hold for a first call whose tool serves the request by itself.
`python -m benchmarks.first_calls` measures them, and fits the numbers below.
"""

from collections.abc import Mapping
from typing import Any

from packetgate.reflex.judge.calls import MAX_CHARS, right_log_odds
from packetgate.reflex.judge.judge import judge
from packetgate.tools.learned import logistic
from packetgate.tools.spec.tool_spec import ToolSpec

MIN_SERVES = 0.88
"""Probability that the tool serves the request, from which a call is judged."""
WEIGHTS = (2.61, 0.567)
"""Of 1 and of the log odds. One call in seven is assumed to be wrong, as with the best models on BFCL."""


def first_call_probability(words: str, spec: ToolSpec, params: Mapping[str, Any], below: float) -> float | None:
    """Return the probability that a call is right; None if it is not below a bound, or was not measured.

    Cached; otherwise blocking: one run of the encoder, and two for a call in doubt.

    Args:
        params: values from the user's words, and defaults.
    """
    if len(words) > MAX_CHARS:
        return None
    probability = logistic((1.0, right_log_odds(words, spec, params)), WEIGHTS)
    return probability if probability < below and judge(words, [spec])[0] >= MIN_SERVES else None
