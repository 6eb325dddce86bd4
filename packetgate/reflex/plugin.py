"""Registers the rules, the judge and the reader of values. Their modules are loaded at first use."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from packetgate.deciders.advice import Score
from packetgate.deciders.protocols import Deciders, Review, Selection
from packetgate.plugins import Plugin
from packetgate.reflex.answer import respond_by_reflex
from packetgate.reflex.intent import detect_by_reflex
from packetgate.reflex.meaning.ranker import SemanticModel
from packetgate.reflex.replies import ReflexReplyReader
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import ToolCall
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.spec.tool_spec import ToolSpec


class ReflexAdviser:
    """Proposes and scores calls in addition to a model."""

    def __init__(self) -> None:
        self._last: tuple[CognitionPacket, Catalogue, Selection] | None = None

    def propose(self, packet: CognitionPacket, catalogue: Catalogue) -> Selection:
        """Return the calls of the likeliest tools. The last selection is kept: a turn needs it several times."""
        last = self._last
        if last is None or last[0] is not packet or last[1] is not catalogue:
            from packetgate.reflex.calls import select  # numpy is slow to load

            self._last = last = packet, catalogue, select(packet, catalogue)
        return last[2]

    def likely_tools(self, packet: CognitionPacket, catalogue: Catalogue) -> Sequence[Mapping[str, float]]:
        """Return the probability of each of the best tools, for each part of the step."""
        from packetgate.reflex.fit import fits_by_part  # numpy is slow to load

        parts = fits_by_part(packet, catalogue).values()
        return [{fit.spec.name: fit.probability for fit in fits} for fits in parts]

    def score(self, calls: Sequence[ToolCall], packet: CognitionPacket, catalogue: Catalogue) -> Sequence[Score]:
        """Return the evidence for each call, from the request and from the calls that it would propose."""
        from packetgate.reflex.scoring import scores_of  # numpy is slow to load

        return scores_of(calls, packet, catalogue, self.propose(packet, catalogue))

    def first_call_probability(
        self, words: str, spec: ToolSpec, params: Mapping[str, Any], below: float
    ) -> float | None:
        """Return the probability that the first call for a request is right, or None if it is at least `below`."""
        from packetgate.reflex.judge.calls import first_call_probability  # numpy is slow to load

        return first_call_probability(words, spec, params, below)


async def select_by_reflex(packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext) -> Selection:
    """Return calls that account for each word of the request, selected without a language model."""
    from packetgate.reflex.deciding import decide  # numpy is slow to load

    return await asyncio.to_thread(decide, packet, catalogue)


async def review_by_reflex(packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext) -> Review:
    """Return judgements on the calls, made without a language model."""
    from packetgate.reflex.calls import review  # numpy is slow to load

    return await asyncio.to_thread(review, packet, catalogue)


ADVISER = ReflexAdviser()
PLUGIN = Plugin(
    name="reflex",
    needs=("numpy", "onnxruntime", "tokenizers", "dateparser"),
    install="in a clone of Packetgate, pip install '.[reflex]'",
    rankers=[SemanticModel()],
    proposers=[ADVISER],
    scorers=[ADVISER],
    judges=[ADVISER],
    deciders=[
        Deciders(detect_by_reflex, select_by_reflex, review_by_reflex, respond_by_reflex, replies=ReflexReplyReader())
    ],
)
