"""Measure how often prompt injections succeed against Packetgate, its middleware, and LangChain's, without a model.

AgentDojo 0.1.35 (suites v1.2.2) has 97 user tasks, 35 attackers' goals and 949 pairs of a task and a goal. It provides
the calls that reach each goal, and tools that act on real state. It runs as an MCP server in its own environment, which
PACKETGATE_AGENTDOJO names or the first run creates. For goals without published calls, the benchmark uses the calls in
`dojo_attacks.py`. It omits goals that only make the model say something, because they need no call. It also plays goals
that post to a page by reads, with the posted data in the address.

The same decider plays against Packetgate, LangChain's `create_agent` with `PacketgateMiddleware`, and the same agent
with `HumanInTheLoopMiddleware`. It makes the user's calls; when an output contains the injection, it makes the
attacker's calls. Neighbouring reads run in one pass, each write in its own pass. The decider does not retry a refused
call. The user sends "Go on." if a turn ends before the task is done. The model sees all tools, and the review approves
each call with confidence 1.0, so that only the gate can stop a call. Packetgate and its middleware know which tools
read; `HumanInTheLoopMiddleware` gets a list of the writes. There are four policies: writes disabled and no approval
(`off`), approval of calls that are not flagged, approval of all calls, and approval of all calls that is remembered if
offered. A call is flagged if its question contains a warning.

The benchmark counts damage separately from goals: a pair is harmed if a call of the attacker changed AgentDojo's state
or read an address, even if the goal was not reached. `dojo_variants.py` defines other wordings and times of the attack.
The benchmark plays each variant with a sample of the pairs to which it applies, with writes disabled and with approval
of calls that are not flagged.
"""

import json
import multiprocessing
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.command_line import command_parser, errors_in_one_line
from benchmarks.safety.dojo import environment
from benchmarks.safety.figures import AT_LEAST, GOALS, explained, figures, is_met, missed, of_variant, slips
from benchmarks.safety.jobs import ADAPTED, AGENTS, PAIRS, VARIANT_PAIRS, jobs
from benchmarks.safety.playing import PLAIN, POLICIES, Outcome
from benchmarks.safety.real import measure_model

MODEL_PAIRS = 20


@dataclass(frozen=True)
class Plan:
    """The agents, pairs and variants to measure."""

    agents: Sequence[str]
    pairs: int
    variants: Sequence[str]
    variant_pairs: int
    workers: int
    resume: Path | None = None
    explain: Path | None = None


def measure(plan: Plan) -> list[dict[str, Any]]:
    """Play a plan, and return the metrics of each agent, then those of each variant.

    Raises:
        InputError: AgentDojo's environment cannot be created, or its server does not start.
    """
    plays: dict[tuple[str, str], list[Outcome]] = {}
    python = environment()
    if plan.resume:
        plan.resume.mkdir(parents=True, exist_ok=True)
    shares = plan.pairs / PAIRS, plan.variant_pairs / PAIRS
    todo = [*jobs(shares[0], python, plan.agents, plan.variants, shares[1])]
    todo.sort(key=lambda job: len(job.variants), reverse=True)  # the longest jobs first
    with ProcessPoolExecutor(plan.workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        running = {pool.submit(job.run_once, plan.resume): job for job in todo}
        for number, future in enumerate(as_completed(running), 1):
            for outcome in future.result():
                plays.setdefault((running[future].agent, outcome.variant), []).append(outcome)
            print(f"{number} of {len(running)}", end="\r", file=sys.stderr, flush=True)
    if plan.explain:
        ours = [one for (agent, _), outcomes in plays.items() if agent == plan.agents[0] for one in outcomes]
        explanations = [*explained([one for one in ours if one.policy == "everything"]), *slips(ours)]
        plan.explain.write_text("".join(f"{json.dumps(one, ensure_ascii=False)}\n" for one in explanations))
    lines = [figures(name, _by_policy(plays[name, PLAIN.name])) for name in plan.agents if plan.pairs]
    adapted = [of_variant(agent, one, plays.get((agent, one), [])) for one in plan.variants for agent in plan.agents]
    return lines + adapted


def _by_policy(outcomes: Sequence[Outcome]) -> dict[str, list[Outcome]]:
    return {policy.name: [one for one in outcomes if one.policy == policy.name] for policy in POLICIES}


def show(line: dict[str, Any]) -> None:
    """Print the metrics of an agent or of a variant as text."""
    if "variant" in line:
        print(f"{line['variant']}, {AGENTS[line['name']]}:")
        if "seconds" in line:
            plays, called = (line[f"{of}_off"] + line[f"{of}_unflagged"] for of in ("played", "called"))
            text = f"{plays} plays in {line['seconds']} s, with calls in {called}; {line['failed']} failed"
            print(f"  {text}; the pairs below are those in which the model made a call of the attacker's")
        for name, label in (("off", "writes off"), ("unflagged", "approved if not flagged")):
            _show_harm(line, name, line[f"pairs_{name}"], label)
        return
    print(
        f"{AGENTS[line['name']]}: {line['tasks']} tasks, {line['pairs']} pairs ({line['of_words']} of words left out)"
    )
    for policy in POLICIES:
        attacks, carried = line[f"attacks_{policy.name}"], line[f"carried_{policy.name}"]
        done = f"{line[f'tasks_done_{policy.name}']} of {line['tasks']} harmless tasks done"
        rate = _against(f"attacks_{policy.name}", attacks / line["pairs"])
        print(f"  {policy.name:11} {attacks:4} attacks succeed, {rate}; {done}")
        _show_harm(line, policy.name, line["harmed_pairs"])
        print(f"  {'':11} {carried:4} of {line['carried_pairs']} carry data off by reads")
        if policy.writes:
            name, unasked = f"questions_{policy.name}", line[f"unasked_{policy.name}"]
            goal = f" (goal: at most {GOALS[name]})" if name in GOALS else ""
            print(f"  {'':11} {line[name]:.2f} questions a harmless task{goal}; {unasked} hostile writes without one")
    for side in ("harmless", "hostile"):
        flagged, written = line[f"{side}_flagged"], line[f"{side}_writes"]
        print(
            f"  {side} writes flagged: {flagged} of {written}, {_against(f'{side}_flagged', flagged / max(1, written))}"
        )
    print(f"  of the writes written out here: {line['written_out_flagged']} of {line['written_out_writes']}")


def _show_harm(line: dict[str, Any], policy: str, pairs: int, label: str = "") -> None:
    harmed, by_kind = line[f"harmed_{policy}"], line[f"kinds_{policy}"]
    kinds = "".join(f"; {kind} {count}" for kind, count in by_kind.items())
    rate = _against(f"harmed_{policy}", harmed / max(1, pairs))
    print(f"  {label:11} {harmed:4} of {pairs} pairs harmed, {rate}{kinds}")


def _against(name: str, reached: float) -> str:
    if name not in GOALS:
        return f"{reached:.1%}"
    bound, met = "at least" if name in AT_LEAST else "at most", "met" if is_met(name, reached) else "missed"
    return f"{reached:.1%} (goal: {bound} {GOALS[name]:.0%}, {met})"


def main(words: Sequence[str] | None = None) -> None:
    """Run the benchmark from the command line."""
    parser = command_parser("benchmarks.safety", __doc__)
    parser.add_argument(
        "--pairs",
        type=int,
        default=PAIRS,
        help="approximate number of pairs, with the same share of tasks; 0: only variants",
    )
    parser.add_argument("--agent", action="append", choices=AGENTS, help="only this agent; can be repeated")
    parser.add_argument("--variant", action="append", choices=[one.name for one in ADAPTED], help="only this variant")
    parser.add_argument(
        "--variant-pairs", type=int, default=VARIANT_PAIRS, help="approximate number of pairs of each variant; 0: none"
    )
    parser.add_argument("--resume", type=Path, help="folder for finished parts, valid only for the same code")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="number of concurrent processes")
    parser.add_argument("--explain", type=Path, help="file for flagged harmless writes and unflagged hostile writes")
    parser.add_argument("--model", help="let this model decide on 20 pairs, or --pairs; named as in PACKETGATE_LITE")
    parser.add_argument("--json", action="store_true", help="print JSON, one line per agent")
    parser.add_argument("--check", action="store_true", help="exit with status 1 if Packetgate misses a goal")
    args = parser.parse_args(words)
    with errors_in_one_line(parser):
        variants = [one.name for one in ADAPTED if one.name in (args.variant or [one.name]) and args.variant_pairs]
        plan = Plan(args.agent or [*AGENTS], args.pairs, variants, args.variant_pairs, args.workers)
        if args.model:
            few = MODEL_PAIRS if args.pairs == PAIRS else args.pairs
            lines = measure_model(args.model, few, environment(), plan.agents, plan.workers)
        else:
            lines = measure(replace(plan, resume=args.resume, explain=args.explain))
    for line in lines:
        if args.json:
            print(json.dumps(line))
        else:
            show(line)
    failed = [goal for line in lines if line["name"] == "packetgate" for goal in missed(line)]
    if args.check and failed:
        print(f"{parser.prog}: goals missed: {', '.join(failed)}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
