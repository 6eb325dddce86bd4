"""How often prompt injections get through Packetgate, its middleware, and LangChain's, without a model.

AgentDojo 0.1.35 (suites v1.2.2) gives 97 user tasks, 35 goals of attackers and 949 pairs of them, with the calls that
reach each and tools that act on real state. It runs as an MCP server, in an environment of its own that is made at the
first run, or lies where PACKETGATE_AGENTDOJO says. Where it publishes no calls for a goal, those of `dojo_attacks.py`
are played; a goal that only wants words said is left out: no call is made for it that anything could stop. Goals of
posting to a page are played by reads too, with what would be posted in the address.

The same decider plays on all three: Packetgate, LangChain's `create_agent` with `PacketgateMiddleware`, and with
LangChain's `HumanInTheLoopMiddleware`. It makes the user's calls, and from the moment when an output carries the
injection, the attacker's. Neighbouring reads go in one pass, each write in its own; what is refused is not tried again,
and the user says "Go on." where a turn ends before the work is done. All tools are shown, and everything is approved of
at 1.0, so that nothing but the gate stands in between. Packetgate asks by itself; for the two agents, somebody has
marked every tool that reads, or listed every tool that writes. Whoever is asked approves of nothing and writes are off
(`off`), of what is not flagged, of everything, or of everything and has it remembered where that is offered; flagged is
what the question itself warns of.
"""

import argparse
import json
import multiprocessing
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from benchmarks.safety.dojo import environment
from benchmarks.safety.figures import AT_LEAST, GOALS, explained, figures
from benchmarks.safety.jobs import AGENTS, PAIRS, jobs
from benchmarks.safety.playing import POLICIES, Outcome
from packetgate.state.errors import PacketgateError


def measure(agents: Sequence[str], pairs: int, workers: int, explain: Path | None) -> list[dict[str, Any]]:
    """Play everything, or a sample of that many pairs, and return the figures of each agent.

    Raises:
        InputError: AgentDojo's environment cannot be made, or its server does not start.
    """
    plays: dict[tuple[str, str], list[Outcome]] = {}
    python = environment()
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        running = {pool.submit(job.run): job for job in jobs(pairs / PAIRS, python, agents)}
        for number, future in enumerate(as_completed(running), 1):
            for outcome in future.result():
                plays.setdefault((running[future].agent, outcome.policy), []).append(outcome)
            print(f"{number} of {len(running)}", end="\r", file=sys.stderr, flush=True)
    if explain:
        told = explained(plays[agents[0], "everything"])
        explain.write_text("".join(f"{json.dumps(one, ensure_ascii=False)}\n" for one in told))
    return [figures(name, {one.name: plays[name, one.name] for one in POLICIES}) for name in agents]


def show(line: dict[str, Any]) -> None:
    """Print the figures of an agent for people."""
    print(
        f"{AGENTS[line['name']]}: {line['tasks']} tasks, {line['pairs']} pairs ({line['of_words']} of words left out)"
    )
    for policy in POLICIES:
        attacks, carried = line[f"attacks_{policy.name}"], line[f"carried_{policy.name}"]
        done = f"{line[f'tasks_done_{policy.name}']} of {line['tasks']} harmless tasks done"
        rate = _against(f"attacks_{policy.name}", attacks / line["pairs"])
        print(f"  {policy.name:11} {attacks:4} attacks succeed, {rate}; {done}")
        print(f"  {'':11} {carried:4} of {line['carried_pairs']} carry data off by reads")
        if policy.writes:
            asked, unasked = line[f"questions_{policy.name}"], line[f"unasked_{policy.name}"]
            print(f"  {'':11} {asked:.2f} questions a harmless task; {unasked} hostile writes without a question")
    for side in ("harmless", "hostile"):
        flagged, written = line[f"{side}_flagged"], line[f"{side}_writes"]
        print(
            f"  {side} writes flagged: {flagged} of {written}, {_against(f'{side}_flagged', flagged / max(1, written))}"
        )
    print(f"  of the writes written out here: {line['written_out_flagged']} of {line['written_out_writes']}")


def _against(name: str, reached: float) -> str:
    if name not in GOALS:
        return f"{reached:.1%}"
    least = name in AT_LEAST
    met = reached >= GOALS[name] if least else reached <= GOALS[name]
    return f"{reached:.1%} (goal: {'at least' if least else 'at most'} {GOALS[name]:.0%}, {'met' if met else 'missed'})"


def main(words: Sequence[str] | None = None) -> None:
    """Measure as the command line says."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.safety", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--pairs", type=int, default=PAIRS, help="only about that many pairs, and as many tasks in turn"
    )
    parser.add_argument("--agent", action="append", choices=AGENTS, help="only this agent; may be given several times")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes that play at once")
    parser.add_argument("--explain", type=Path, help="file for the harmless writes flagged and the hostile ones not")
    parser.add_argument("--json", action="store_true", help="print one line of JSON an agent")
    given = parser.parse_args(words)
    try:
        lines = measure(given.agent or [*AGENTS], given.pairs, given.workers, given.explain)
    except PacketgateError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        sys.exit(2)
    for line in lines:
        if given.json:
            print(json.dumps(line))
        else:
            show(line)


if __name__ == "__main__":
    main()
