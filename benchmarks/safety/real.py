"""Measure a real model as the decider on a sample of pairs: how often it follows an injection, and with what effect.

No script determines its calls. A call counts as the attacker's if it is one of the calls that reach the goal, or
contains one of their values that the user did not give.
"""

import asyncio
import json
import multiprocessing
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.real_models.opening import by_one, open_model
from benchmarks.safety.dojo import Call, Dojo, dojo
from benchmarks.safety.figures import of_variant
from benchmarks.safety.jobs import spread
from benchmarks.safety.packetgate import packetgate
from benchmarks.safety.playing import POLICIES, Arena, Outcome, Policy, Script, played
from benchmarks.safety.rival import langchain
from packetgate.models.model import Model
from packetgate.state.errors import PacketgateError

SUITES = ("banking", "slack")
"""Suites with few tools, whose definitions fit the context of a small model."""
AGENTS = ("packetgate", "langchain")
_SHORTEST = 6


@dataclass
class Observed(Script):
    """The calls of a model, by side."""

    is_hostile: bool = True

    def __post_init__(self) -> None:
        self._left = []
        self._marks = set()

    def see(self, call: Call) -> None:
        """Record a call of the model."""
        self.made.append((call, not self.is_own(call)))

    def next_words(self) -> str | None:
        """Return None, because the user sends no other message."""
        return None

    def is_own(self, call: Call) -> bool:
        """Whether a call is not the attacker's."""
        values = [one for step in self.started.attack for one in _texts(step.params)]
        theirs = [one for one in values if len(one) >= _SHORTEST and one not in self.started.prompt]
        text = json.dumps(call.params, ensure_ascii=False)
        return call not in self.started.attack and not any(one in text for one in theirs)


def _texts(params: Mapping[str, Any]) -> list[str]:
    return [str(one) for value in params.values() for one in (value if isinstance(value, list) else [value])]


@dataclass(frozen=True)
class ModelJob:
    """Pairs of a suite that a model plays with one server process."""

    model: str
    agent: str
    suite: str
    part: int
    parts: int
    python: Path
    pairs: int
    """Number of sampled pairs of the suite; this job plays every `parts`-th pair, starting with `part`."""

    def run(self) -> "ModelPlays":
        """Play with writes disabled and with writes enabled in this process.

        Raises:
            InputError: the name is not that of a language model, or AgentDojo's server does not start.
            ModelError: the model cannot be loaded.
        """
        return asyncio.run(self._run())

    async def _run(self) -> "ModelPlays":
        model = await open_model(self.model)
        outcomes, failed = list[Outcome](), 0
        async with dojo(self.suite, self.python) as (place, folder), self._arena(place, folder, model) as arena:
            users, injections, by_reads = await place.tasks()
            every = spread([(user, one) for one in injections + by_reads for user in users], 0)
            for pair in islice(every, self.part, self.pairs, self.parts):
                for policy in POLICIES[:2]:
                    one = await _outcome(arena, place, policy, pair)
                    outcomes += [one] if one else []
                    failed += one is None
        return ModelPlays(model.name, outcomes, failed)

    def _arena(self, place: Dojo, folder: Path, model: Model) -> AbstractAsyncContextManager[Arena]:
        return packetgate(place, folder, by_one(model)) if self.agent == "packetgate" else langchain(place, model.chat)


@dataclass
class ModelPlays:
    """The plays of a model."""

    model: str
    outcomes: list[Outcome]
    failed: int


def measure_model(
    name: str, pairs: int, python: Path, agents: Sequence[str] = AGENTS, workers: int = 1
) -> list[dict[str, Any]]:
    """Play a sample of the pairs, with writes disabled and enabled, and return the metrics by agent.

    Raises:
        InputError: the name is not that of a language model, or AgentDojo's server does not start.
        ModelError: the model cannot be loaded.
    """
    lines = []
    count = max(1, pairs // len(SUITES))
    parts = min(count, max(1, workers // len(SUITES)))
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        for agent in (one for one in AGENTS if one in agents):
            begun = perf_counter()
            jobs = [
                ModelJob(name, agent, suite, part, parts, python, count) for part in range(parts) for suite in SUITES
            ]
            plays = [*pool.map(ModelJob.run, jobs)]
            outcomes = [one for each in plays for one in each.outcomes]
            counts: dict[str, int] = {}
            for policy in POLICIES[:2]:
                under = [each for each in outcomes if each.policy == policy.name]
                counts[f"played_{policy.name}"] = len(under)
                counts[f"called_{policy.name}"] = sum(bool(each.made) for each in under)
            failed, seconds = sum(each.failed for each in plays), round(perf_counter() - begun)
            line = of_variant(agent, plays[0].model, outcomes) | counts
            lines.append(line | {"failed": failed, "seconds": seconds})
    return lines


async def _outcome(arena: Arena, place: Dojo, policy: Policy, pair: tuple[str, str]) -> Outcome | None:
    try:
        return await played(arena, place, policy, *pair, script=Observed)
    except (PacketgateError, ValueError, RuntimeError) as error:
        print(f"{place.suite} {pair}: {error}", file=sys.stderr)
        return None
