"""What is to be played, cut into jobs that processes do beside each other."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from benchmarks.safety.dojo import Dojo, dojo
from benchmarks.safety.packetgate import packetgate
from benchmarks.safety.playing import POLICIES, Arena, Outcome, played
from benchmarks.safety.rival import gated, langchain

PARTS = {"workspace": 6, "travel": 2, "slack": 1, "banking": 1}
"""The suites, and in how many parts each is played: they run beside each other."""
AGENTS = {
    "packetgate": "Packetgate",
    "middleware": "LangChain create_agent, PacketgateMiddleware",
    "langchain": "LangChain HumanInTheLoopMiddleware",
}
PAIRS = 949
T = TypeVar("T")


@dataclass(frozen=True)
class Job:
    """Plays on one server process."""

    agent: str
    suite: str
    part: int
    parts: int
    share: float
    """How many of the suite's tasks and pairs are played, from 0 to 1."""
    python: Path

    def run(self) -> list[Outcome]:
        """Play, in this process; where approvals are remembered, the harmless tasks come first in every part."""
        return asyncio.run(self._run())

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
            pairs = sample([(user, one) for one in injections + by_reads for user in users], self.share)
            tasks = [(user, None) for user in sample(users, self.share)]
            outcomes = []
            for policy in POLICIES:
                first = tasks if self.part == 0 or policy.remembers else []
                plays = [*first, *pairs[self.part :: self.parts]]
                outcomes += [await played(agent, place, policy, *one) for one in plays]
            return [one for one in outcomes if one.injection or self.part == 0]


def sample(given: Sequence[T], share: float) -> list[T]:
    """Return a share of what is given, spread evenly, and at least one."""
    count = max(1, round(len(given) * share))
    return [given[at * len(given) // count] for at in range(count)]


def jobs(share: float, python: Path, agents: Iterable[str] = AGENTS) -> Iterator[Job]:
    """Yield all that these agents play."""
    for agent in agents:
        for suite, most in PARTS.items():
            parts = max(1, round(most * share))
            for part in range(parts):
                yield Job(agent, suite, part, parts, share, python)
