"""Doubt the first call that a LangChain agent or an MCP client makes for a request.

Only the user's words are read, never a result. Later calls, and calls with values from elsewhere, have no confidence:
`python -m benchmarks.first_calls` shows why. A confidence at or above the threshold has no effect and is not shown.
"""

import asyncio

from packetgate.gate.confidence import CallReview
from packetgate.gate.facts import Facts
from packetgate.plugins import installed
from packetgate.state.base import ConfidenceSource
from packetgate.state.routing import NO_OBJECTION, Risk, ToolCall
from packetgate.tools.learned import log_odds, logistic

_BY_WORDS = "judged by your words alone, the tool or a value may be wrong"
_BY_TOKENS = "the model was not sure of this call"


async def doubt_first_call(
    call: ToolCall, *, facts: Facts, asks_about_reads: bool, by_tokens: float = 0.0
) -> CallReview | None:
    """Return a review below the threshold of a request's first call; None if it is not in doubt, or not judged.

    A call is judged if it needs approval anyway, or if it is a read that reaches outside and the user can be asked: a
    question costs the user more than a wrong local read costs the agent.

    Args:
        call: the call with its verdict.
        by_tokens: log odds that the model's token probabilities add.
    """
    settings, verdict = facts.settings, call.verdict or NO_OBJECTION
    is_read_outside = verdict == NO_OBJECTION and call.risk is Risk.READ and call.open_world
    if not (verdict.effect == "ask" or (is_read_outside and asks_about_reads)) or not settings.confidence_threshold:
        return None
    if not (facts.words and facts.are_user_words) or call.unstated_origins:
        return None
    spec, judges = facts.catalogue[call.tool_name], installed().parts("judges")
    below = logistic((1.0, log_odds(settings.confidence_threshold)), (-by_tokens, 1.0))
    judged = [
        await asyncio.to_thread(one.first_call_probability, facts.words, spec, call.params, below) for one in judges
    ]
    by_words = min((one for one in judged if one is not None), default=None)
    if by_words is None:
        return None
    return CallReview(
        call_id=call.call_id,
        approved=True,
        confidence=logistic((1.0, log_odds(by_words)), (by_tokens, 1.0)),
        confidence_source=ConfidenceSource.CALIBRATED,
        evidence={"by_words": by_words, **({"by_tokens": by_tokens} if by_tokens else {})},
        reasoning=_BY_WORDS if by_words < settings.confidence_threshold else _BY_TOKENS,
    )
