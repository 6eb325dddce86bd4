"""Collect advice for a model: proposers of calls, scorers, which give evidence for a call, and judges of first calls.

They read the request and the tools, without a model. Plug-ins register them. Without any, the model's own evidence
decides, and a call of another agent has no confidence.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

from packetgate.deciders.protocols import Selection
from packetgate.plugins import Plugins
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import ToolCall
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.spec.tool_spec import ToolSpec


@runtime_checkable
class Proposer(Protocol):
    """Proposes calls for the current step of a request. Its methods block, and threads share it."""

    def propose(self, packet: CognitionPacket, catalogue: Catalogue) -> Selection:
        """Return the calls that fit, with the probability that they are right; or none."""
        ...

    def likely_tools(self, packet: CognitionPacket, catalogue: Catalogue) -> Sequence[Mapping[str, float]]:
        """Return, for each part of the step, the probability of each tool that may serve it, best first."""
        ...


class Score(NamedTuple):
    """Evidence for and against a call."""

    evidence: Mapping[str, float] = {}
    """By name. Evidence with the name of a field of `CallEvidence` is weighed; all evidence is kept with the call."""
    reasons: tuple[str, ...] = ()
    """For the trace."""


@runtime_checkable
class Scorer(Protocol):
    """Gives evidence for calls, whoever proposed them. It blocks, and threads share it."""

    def score(self, calls: Sequence[ToolCall], packet: CognitionPacket, catalogue: Catalogue) -> Sequence[Score]:
        """Return a score for each call."""
        ...


@runtime_checkable
class FirstCallJudge(Protocol):
    """Judges the first call that an agent makes for a request. It blocks, and threads share it."""

    def first_call_probability(
        self, words: str, spec: ToolSpec, params: Mapping[str, Any], below: float
    ) -> float | None:
        """Return the probability that a call fulfils the request, or None if it is unknown or at least `below`.

        All values of the call come from the user's words or are defaults.
        """
        ...


@dataclass(frozen=True)
class Advisers:
    """The proposers and scorers in use. All methods block."""

    proposers: tuple[Proposer, ...] = ()
    scorers: tuple[Scorer, ...] = ()

    @classmethod
    def of(cls, plugins: Plugins) -> "Advisers":
        """Return the proposers and scorers of the plug-ins."""
        return cls(plugins.parts("proposers"), plugins.parts("scorers"))

    def propose(self, packet: CognitionPacket, catalogue: Catalogue) -> Selection | None:
        """Return the surest proposal, preferably one with a call; None without a proposer."""
        proposals = [proposer.propose(packet, catalogue) for proposer in self.proposers]
        return max(proposals, key=lambda one: (one.action == "call", one.confidence), default=None)

    def likely_tools(self, packet: CognitionPacket, catalogue: Catalogue, least: float = 0.0) -> list[str]:
        """Return the tools that serve the step at least with this probability, those of its first part first."""
        parts = [part for proposer in self.proposers for part in proposer.likely_tools(packet, catalogue)]
        return [*dict.fromkeys(name for part in parts for name, probability in part.items() if probability >= least)]

    def probability_of_tool(self, packet: CognitionPacket, catalogue: Catalogue) -> float | None:
        """Return the probability that some tool serves a part of the step; None without a proposer."""
        parts = [part for proposer in self.proposers for part in proposer.likely_tools(packet, catalogue)]
        return max((sum(part.values()) for part in parts), default=0.0 if self.proposers else None)

    def scores(self, calls: Sequence[ToolCall], packet: CognitionPacket, catalogue: Catalogue) -> list[Score]:
        """Return the evidence of all scorers for each call."""
        scores = [Score() for _ in calls]
        for scorer in self.scorers:
            new = scorer.score(calls, packet, catalogue)
            scores = [
                Score({**old.evidence, **one.evidence}, old.reasons + one.reasons)
                for old, one in zip(scores, new, strict=True)
            ]
        return scores


NO_ADVISERS = Advisers()
LIKELY = 0.5  # probability that some tool serves the request, from which a call is expected
