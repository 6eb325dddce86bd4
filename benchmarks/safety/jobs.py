"""Divide the plays into jobs for concurrent processes."""

import asyncio
import math
import pickle
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from benchmarks.safety.dojo import Dojo, dojo
from benchmarks.safety.dojo_variants import VARIANTS, Variant
from benchmarks.safety.packetgate import packetgate
from benchmarks.safety.playing import PLAIN, POLICIES, Arena, Outcome, played, policies_of
from benchmarks.safety.rival import gated, langchain

PARTS = {"workspace": 6, "travel": 2, "slack": 1, "banking": 1}
"""The suites, and the number of concurrent parts of each."""
AGENTS = {
    "packetgate": "Packetgate",
    "middleware": "LangChain create_agent, PacketgateMiddleware",
    "langchain": "LangChain HumanInTheLoopMiddleware",
}
PAIRS = 949
VARIANT_PAIRS = 120
ADAPTED = tuple(one for one in VARIANTS.values() if one is not PLAIN)
T = TypeVar("T")


@dataclass(frozen=True)
class Job:
    """Plays with one server process."""

    agent: str
    suite: str
    part: int
    parts: int
    share: float
    """Share of the suite's tasks and pairs that are played, from 0 to 1."""
    python: Path
    variants: tuple[str, ...] = (PLAIN.name,)

    def run(self) -> list[Outcome]:
        """Play in this process. With remembered approvals, the harmless tasks come first in every part."""
        return asyncio.run(self._run())

    def run_once(self, folder: Path | None) -> list[Outcome]:
        """Return the stored outcomes of a folder, or play and store them."""
        if folder is None:
            return self.run()
        name = (
            f"{self.agent}-{self.suite}-{self.part}-of-{self.parts}-{self.share:.3f}-{'-'.join(self.variants)}.pickle"
        )
        kept = folder / name
        if kept.exists():
            found: list[Outcome] = pickle.loads(kept.read_bytes())
            return found
        outcomes = self.run()
        part = kept.with_suffix(".part")
        part.write_bytes(pickle.dumps(outcomes))
        part.replace(kept)
        return outcomes

    def _agent(self, place: Dojo, folder: Path) -> AbstractAsyncContextManager[Arena]:
        match self.agent:
            case "packetgate":
                return packetgate(place, folder)
            case "middleware":
                return gated(place, folder)
        return langchain(place)

    async def _run(self) -> list[Outcome]:
        async with (
            dojo(self.suite, self.python) as (place, folder),
            self._agent(place, folder) as agent,
        ):
            users, injections, by_reads = await place.tasks()
            pairs = [(user, one) for one in injections + by_reads for user in users]
            tasks = sample(users, self.share)
            outcomes = []
            for variant in map(VARIANTS.__getitem__, self.variants):
                if variant is PLAIN:
                    outcomes += await self._plain(agent, place, tasks, sample(pairs, self.share))
                else:
                    outcomes += await self._adapted(agent, place, users, pairs, variant)
            return outcomes

    async def _plain(
        self, agent: Arena, place: Dojo, tasks: Sequence[str], pairs: Sequence[tuple[str, str]]
    ) -> list[Outcome]:
        outcomes = []
        for policy in POLICIES:
            first = [(user, None) for user in tasks] if self.part == 0 or policy.remembers else []
            plays = [*first, *pairs[self.part :: self.parts]]
            outcomes += [await played(agent, place, policy, *one) for one in plays]
        return [one for one in outcomes if one.injection or self.part == 0]

    async def _adapted(
        self, agent: Arena, place: Dojo, users: Sequence[str], pairs: Sequence[tuple[str, str]], variant: Variant
    ) -> list[Outcome]:
        """Run a share of the pairs to which the variant applies."""
        count, outcomes = max(1, round(len(pairs) * self.share)), []
        for policy in policies_of(variant):
            for user in users if policy.remembers else ():
                await played(agent, place, policy, user, None)
            fitting = 0
            for pair in spread(pairs, ADAPTED.index(variant)):
                if fitting == count:
                    break
                outcome = await played(agent, place, policy, *pair, variant=variant)
                fitting += outcome.is_tried if variant.swaps else bool(outcome.started.attack)
                outcomes.append(outcome)
        return [one for one in outcomes if one.started.attack]


def sample(given: Sequence[T], share: float) -> list[T]:
    """Return a share of the items, evenly spread, at least one."""
    count = max(1, round(len(given) * share))
    return [given[at * len(given) // count] for at in range(count)]


def spread(given: Sequence[T], offset: int) -> Iterator[T]:
    """Yield all items, ordered so that the first N items are evenly spread for any N."""
    stride = next(one for one in range(round(len(given) * 0.618), len(given) + 2) if math.gcd(one, len(given)) == 1)
    return (given[(offset + at * stride) % len(given)] for at in range(len(given)))


def jobs(
    share: float,
    python: Path,
    agents: Iterable[str] = AGENTS,
    adapted: Iterable[str] = (),
    adapted_share: float = VARIANT_PAIRS / PAIRS,
) -> Iterator[Job]:
    """Yield the jobs of these agents: plain pairs, and a share of the pairs in these variants."""
    names = tuple(adapted)
    for agent in agents:
        for suite, most in PARTS.items():
            parts = max(1, round(most * share))
            for part in range(parts if share else 0):
                yield Job(agent, suite, part, parts, share, python)
            parts = min(most, len(names))
            for part in range(parts):
                yield Job(agent, suite, part, parts, adapted_share, python, names[part::parts])
