"""What a user's confirmed calls teach: which tools served requests like this one.

A request is compared with those that led to a call which ran, by the stems they share, the rare ones counting more.
What failed, was denied or only tried teaches nothing, nor does a call that goes by an earlier
output. A use counts as far as the ranking did not have the tool first by itself: what it knows already would only push
others aside.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from packetgate.state.base import Section, now
from packetgate.state.origins import OriginKind
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import ToolCall
from packetgate.state.sections import ApprovalOutcome, Header, PaletteEntry
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.ranking.bm25 import Ranked
from packetgate.tools.text.words import query_terms, stem_of
from packetgate.tools.usage.record import ASKED_CHARS

HALF_LIFE_DAYS = 60.0
"""After which a use counts half."""
UNASKED = 0.5
"""What a call counts that ran without a person's approval."""
ELSEWHERE = 0.5
"""What a use counts in a conversation of another type."""
USES_A_TOOL = 20
"""The newest uses of a tool that count."""
GENERAL = "general"
"""The type of a conversation on nothing in particular."""
SECOND = 0.5
"""What the second-nearest use of a tool adds to the nearest."""
WEIGHT = 1.0
"""What a use in the very same words adds to a score, as a multiple of the best. More helps tools that were used, and
costs the tools beside them that were not."""


MOST_ADDED = 6
"""Tools that earlier uses add to a ranking that does not have them."""


class ConfirmedUse(Section):
    """A request, and a tool that served it."""

    tool: str
    asked: str
    context_type: str
    session_id: str
    at: datetime
    weight: float = 1.0


def confirmed_uses(packet: CognitionPacket) -> Iterator[ConfirmedUse]:
    """Yield what a turn that has come to its end teaches."""
    approved = {one.call_id for one in packet.governance.approvals if one.outcome is ApprovalOutcome.APPROVED}
    scores = {entry.tool_name: entry.score for entry in packet.context.palette}
    most = max(scores.values(), default=0.0)
    for call in packet.tool_routing.all_calls if packet.tool_routing else ():
        missing = surprise(scores.get(call.tool_name, 0.0), most)
        ran = call.status is ToolExecutionStatus.EXECUTED and call.chain is None
        if ran and not call.foreign and missing:
            yield ConfirmedUse(
                tool=call.tool_name,
                asked=packet.content.original_prompt[:ASKED_CHARS],
                context_type=packet.context.context_type,
                session_id=packet.header.session_id,
                at=packet.header.created_at,
                weight=missing * (1.0 if call.call_id in approved else UNASKED),
            )


def shown_use(
    call: ToolCall, asked: str, palette: Sequence[PaletteEntry], counts: float, header: Header
) -> ConfirmedUse | None:
    """Return what a call teaches that an outside agent made; None where that is nothing.

    Its model words the arguments, so that they are nobody's; one that takes what a text said still teaches nothing.
    `counts` is how telling it is that this tool was chosen, by the way to it.
    """
    scores = {entry.tool_name: entry.score for entry in palette}
    missing = surprise(scores.get(call.tool_name, 0.0), max(scores.values(), default=0.0))
    led = any(origin.kind is OriginKind.TEXT for origin in call.provenance.values())
    ran = call.status is ToolExecutionStatus.EXECUTED
    if not asked or not ran or led or call.is_flagged or not missing:
        return None
    return ConfirmedUse(
        tool=call.tool_name,
        asked=asked[:ASKED_CHARS],
        context_type=GENERAL,
        session_id=header.session_id,
        at=header.created_at,
        weight=missing * counts,
    )


def surprise(score: float, most: float) -> float:
    """Return how far a tool that served was from the first place, by its score and the best: 0 where it had that."""
    return 1.0 - score / most if most > 0 else 1.0


class Learned:
    """What one user's confirmed calls say of tools. It never changes, and threads may share it."""

    def __init__(self, uses: Iterable[ConfirmedUse], at: datetime | None = None) -> None:
        """Take the newest uses of each tool, as they count at a time: now, if none is given."""
        today, counted = at or now(), Counter[str]()
        self._uses: list[tuple[ConfirmedUse, float]] = []
        self._by_stem: defaultdict[str, list[int]] = defaultdict(list)
        stems: list[frozenset[str]] = []
        for use in sorted(uses, key=lambda use: use.at, reverse=True):
            counted[use.tool] += 1
            if counted[use.tool] <= USES_A_TOOL:
                age = max(0.0, (today - use.at).total_seconds() / 86_400)
                for stem in (said := _stems(use.asked)):
                    self._by_stem[stem].append(len(self._uses))
                self._uses.append((use, use.weight * 0.5 ** (age / HALF_LIFE_DAYS)))
                stems.append(said)
        self._lengths = [self._length(said) for said in stems]

    def support(self, request: str, context_type: str) -> dict[str, float]:
        """Return how far earlier uses speak for tools: 1 where one was asked for in the very same words just now."""
        said = _stems(request)
        length, products = self._length_of_request(said), defaultdict[int, float](float)
        for stem in said & self._by_stem.keys():
            for at in self._by_stem[stem]:
                products[at] += self._rarity(stem) ** 2
        near: defaultdict[str, list[float]] = defaultdict(list)
        for at, product in products.items():
            use, weight = self._uses[at]
            here = 1.0 if use.context_type == context_type else ELSEWHERE
            near[use.tool].append(here * weight * product / (length * self._lengths[at]))
        return {
            tool: sum(share * SECOND**place for place, share in enumerate(sorted(shares)[:-3:-1]))
            for tool, shares in near.items()
        }

    def _length_of_request(self, stems: frozenset[str]) -> float:
        """Return the length of a request: a word that no use knows counts no more than the rarest that one knows.

        Where there are few uses, the unknown words of a new phrasing would otherwise be all that counts.
        """
        most = max((self._rarity(stem) for stem in stems & self._by_stem.keys()), default=0.0)
        return math.sqrt(sum(min(self._rarity(stem), most) ** 2 for stem in stems))

    def _length(self, stems: Iterable[str]) -> float:
        return math.sqrt(sum(self._rarity(stem) ** 2 for stem in stems))

    def _rarity(self, stem: str) -> float:
        holders = len(self._by_stem.get(stem, ()))
        return math.log1p((len(self._uses) - holders + 0.5) / (holders + 0.5))


def sharpened(hits: Sequence[Ranked], support: Mapping[str, float]) -> list[Ranked]:
    """Return a ranking in which earlier uses count too: all of `hits`, and at most `MOST_ADDED` tools more."""
    if not support:
        return list(hits)
    most = max((hit.score for hit in hits), default=1.0)
    known = {hit.name: hit for hit in hits}
    others = sorted(support.keys() - known.keys(), key=lambda name: (-support[name], name))[:MOST_ADDED]
    known |= {name: Ranked(name, 0.0) for name in others}
    scored = [replace(hit, score=hit.score + WEIGHT * most * support.get(name, 0.0)) for name, hit in known.items()]
    return sorted(scored, key=lambda hit: (-hit.score, hit.name))


def _stems(request: str) -> frozenset[str]:
    return frozenset(map(stem_of, query_terms(request)))
