"""Learn from a user's earlier calls which tools served similar requests.

Requests are compared by their stems, and rare stems count more. A call counts only if it ran and no argument comes from
an earlier output. It counts more if the ranking placed its tool lower.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from packetgate.ranking.bm25 import Ranked, words_by_stem
from packetgate.state.base import Section, now
from packetgate.state.origins import OriginKind
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import ToolCall
from packetgate.state.sections import ApprovalOutcome, Header, PaletteEntry
from packetgate.state.transitions import ToolExecutionStatus

RECORDED_CHARS = 1_000
"""Longest part of a request that is stored, in characters."""
HALF_LIFE_DAYS = 60.0
UNAPPROVED_WEIGHT = 0.5
"""Weight of a call that ran without a person's approval."""
OTHER_CONTEXT_WEIGHT = 0.5
"""Weight of a confirmed use in another kind of conversation."""
MAX_USES_PER_TOOL = 20
"""Number of a tool's newest uses that count."""
DEFAULT_CONTEXT_TYPE = "general"
"""The default kind of conversation."""
SECOND_WEIGHT = 0.5
"""Weight of a tool's second-nearest use."""
WEIGHT = 1.0
"""Support by an identical request, as a multiple of the best score. A higher weight ranks used tools above similar
unused tools."""
MAX_ADDED_TOOLS = 6
"""Maximum tools that earlier uses add to a ranking."""


class ConfirmedUse(Section):
    """A request and the tool that served it."""

    tool: str
    asked: str
    context_type: str
    session_id: str
    at: datetime
    weight: float = 1.0


def confirmed_uses(packet: CognitionPacket) -> Iterator[ConfirmedUse]:
    """Yield the uses of an ended turn."""
    approved = {one.call_id for one in packet.governance.approvals if one.outcome is ApprovalOutcome.APPROVED}
    for call in packet.tool_routing.all_calls if packet.tool_routing else ():
        weight = 1.0 if call.call_id in approved else UNAPPROVED_WEIGHT
        use = _use(call, packet.content.original_prompt, packet.context.palette, weight, packet.header)
        if use and not call.unstated_origins:
            yield use.changed(context_type=packet.context.context_type)


def agent_use(
    call: ToolCall, asked: str, palette: Sequence[PaletteEntry], weight: float, header: Header
) -> ConfirmedUse | None:
    """Return the use by a call of an agent outside Packetgate; None if the call does not count.

    The agent's model writes the arguments, so a call with an argument from free text or a flagged call does not count.
    """
    has_free_text = any(origin.kind is OriginKind.TEXT for origin in call.provenance.values())
    return _use(call, asked, palette, weight, header) if asked and not has_free_text and not call.is_flagged else None


def _use(
    call: ToolCall, asked: str, palette: Sequence[PaletteEntry], weight: float, header: Header
) -> ConfirmedUse | None:
    scores = {entry.tool_name: entry.score for entry in palette}
    weight *= rank_surprise(scores.get(call.tool_name, 0.0), max(scores.values(), default=0.0))
    if call.status is not ToolExecutionStatus.EXECUTED or not weight:
        return None
    return ConfirmedUse(
        tool=call.tool_name,
        asked=asked[:RECORDED_CHARS],
        context_type=DEFAULT_CONTEXT_TYPE,
        session_id=header.session_id,
        at=header.created_at,
        weight=weight,
    )


def rank_surprise(score: float, most: float) -> float:
    """Return how far a tool's score was below the best score: 0 for the best tool, up to 1."""
    return 1.0 - score / most if most > 0 else 1.0


class LearnedUses:
    """The confirmed uses of one user. Threads share the object, so it is never modified."""

    def __init__(self, uses: Iterable[ConfirmedUse]) -> None:
        """Take the newest uses of each tool, and weight them by their age."""
        today, counted = now(), Counter[str]()
        self._uses: list[tuple[ConfirmedUse, float]] = []
        self._by_stem: defaultdict[str, list[int]] = defaultdict(list)
        for use in sorted(uses, key=lambda use: use.at, reverse=True):
            counted[use.tool] += 1
            if counted[use.tool] <= MAX_USES_PER_TOOL:
                age = max(0.0, (today - use.at).total_seconds() / 86_400)
                for stem in words_by_stem(use.asked):
                    self._by_stem[stem].append(len(self._uses))
                self._uses.append((use, use.weight * 0.5 ** (age / HALF_LIFE_DAYS)))
        self._lengths = [0.0] * len(self._uses)
        for stem, places in self._by_stem.items():
            for place in places:
                self._lengths[place] += self._rarity(stem) ** 2

    def support(self, request: str, context_type: str) -> dict[str, float]:
        """Return how much earlier uses support each tool: 1 for an approved call of an identical request today."""
        stems = {*words_by_stem(request)}
        known = {stem: self._rarity(stem) for stem in stems & self._by_stem.keys()}
        rarest = max(known.values(), default=0.0)
        # an unknown word counts at most as much as the rarest known word; otherwise a few uses would never match
        length = math.sqrt(sum(min(self._rarity(stem), rarest) ** 2 for stem in stems))
        products: defaultdict[int, float] = defaultdict(float)
        for stem, rarity in known.items():
            for place in self._by_stem[stem]:
                products[place] += rarity**2
        near: defaultdict[str, list[float]] = defaultdict(list)
        for place, product in products.items():
            use, weight = self._uses[place]
            weight *= 1.0 if use.context_type == context_type else OTHER_CONTEXT_WEIGHT
            near[use.tool].append(weight * product / (length * math.sqrt(self._lengths[place])))
        return {
            tool: sum(share * SECOND_WEIGHT**rank for rank, share in enumerate(sorted(shares)[:-3:-1]))
            for tool, shares in near.items()
        }

    def _rarity(self, stem: str) -> float:
        holders = len(self._by_stem.get(stem, ()))
        return math.log1p((len(self._uses) - holders + 0.5) / (holders + 0.5))


def add_support(hits: Sequence[Ranked], support: Mapping[str, float]) -> list[Ranked]:
    """Return a ranking by scores plus support: all tools of `hits`, and at most `MAX_ADDED_TOOLS` others."""
    if not support:
        return list(hits)
    most = max((hit.score for hit in hits), default=1.0)
    known = {hit.name: hit for hit in hits}
    others = sorted(support.keys() - known.keys(), key=lambda name: (-support[name], name))[:MAX_ADDED_TOOLS]
    known |= {name: Ranked(name, 0.0) for name in others}
    scored = [replace(hit, score=hit.score + WEIGHT * most * support.get(name, 0.0)) for name, hit in known.items()]
    return sorted(scored, key=lambda hit: (-hit.score, hit.name))
