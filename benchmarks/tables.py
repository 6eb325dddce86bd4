"""Write the tables of README.md and docs/, and the plots in docs/plots/, from the results in benchmarks/results/.

A table is between `<!-- table: NAME -->` and `<!-- end of table -->`. --measure first runs a benchmark again and stores
its result. PACKETGATE_DATA is the folder of the data sets.
"""

import re
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from benchmarks.clients.agents.agent import FIGURES
from benchmarks.clients.client import FEATURES
from benchmarks.command_line import command_parser, errors_in_one_line
from benchmarks.plots import FOLDER, PLOTS, SETS, TAKERS, TEXTS, drawn
from benchmarks.real_models.together import REAL, WAYS, together
from benchmarks.results_kept import ROOT, Result, keep, read
from benchmarks.safety.figures import AT_LEAST, GOALS, OF

FILES = (ROOT / "README.md", *(ROOT / "docs" / page for page in ("benchmarks.md", "comparison.md", "proxy.md")))
TABLE = re.compile(r"(<!-- table: (.+?) -->\n).*?(<!-- end of table -->)", re.DOTALL)

SHORT = ", short"
"""Suffix of the names of tables that omit their commands."""

RANKERS = {"packetgate": "Packetgate", "fastmcp": "FastMCP", "bm25s": "bm25s"}

CALLS = {
    "calls": "calls of a model",
    "prompt": "prompt tokens, schemas included",
    "cached": "the same where a provider keeps prompts, at a tenth",
    "output": "tokens written",
}
SHARES = {"prompt": "share", "cached": "cached_share"}
MODEL_GOALS = {
    "calls": "at most 3",
    "prompt": "at most 12.5 % of `create_agent`",
    "cached": "at most 100 % of `create_agent`",
    "output": "at most 106",
}


def ranking(result: Result) -> Iterator[str]:
    """Yield the metrics of each ranking by data set."""
    yield from _head("data set", "requests", "tools", "ranking", "R@1", "R@5", "R@10", "nDCG@10", "p50 ms", "p95 ms")
    for run in result.runs:
        for line in run.printed:
            first = line is run.printed[0]
            size = (f"[{run.title}]({run.origin})", f"{line['queries']:,}", f"{line['tools']:,}")
            found = (f"{line[figure]:.3f}" for figure in ("recall@1", "recall@5", "recall@10", "ndcg@10"))
            took = (f"{line[figure]:.2f}" for figure in ("p50_ms", "p95_ms"))
            yield _row(*(size if first else ("", "", "")), RANKERS[line["name"]], *found, *took)


def ranking_short(result: Result) -> Iterator[str]:
    """Yield recall at five and duration by data set."""
    yield from _head("data set", "tools", "Packetgate, first five", "FastMCP", "Packetgate, median ms", "FastMCP")
    for run in result.runs:
        ours, theirs, *_ = run.printed
        found = [_percent(line["recall@5"]) for line in (ours, theirs)]
        took = [f"{line['p50_ms']:.1f}" for line in (ours, theirs)]
        yield _row(f"[{run.title}]({run.origin})", f"{ours['tools']:,}", *found, *took)


def tokens(result: Result) -> Iterator[str]:
    """Yield the tokens that tool selection takes: median and largest."""
    lines = _by_text(result)
    names = [f"{SETS[of]}, {one['tools']:,} tools" for of, one in lines["full catalogue"].items()]
    yield from _head("tokens to choose among", *(part for name in names for part in (name, "largest")))
    for text, shown in TEXTS.items():
        yield _row(shown, *(part for one in lines[text].values() for part in _spent(one)))


def tokens_short(result: Result) -> Iterator[str]:
    """Yield the tokens that tool selection takes: median only."""
    lines = _by_text(result)
    names = [f"{SETS[of]}, {one['tools']:,} tools" for of, one in lines["full catalogue"].items()]
    yield from _head("tokens to choose among", *names)
    for text, shown in TEXTS.items():
        yield _row(shown, *(_spent(one)[0] for one in lines[text].values()))


def models(result: Result) -> Iterator[str]:
    """Yield the calls and tokens of a plain read, and their price, by side."""
    lines = result.runs[0].printed
    pairs = list(zip(lines[::2], lines[1::2], strict=True))
    sides = (f"{ours['asked']}: {name}" for ours, _ in pairs for name in ("Packetgate", "`create_agent`"))
    yield from _head("a plain read, medians", *sides, "goal")
    for figure, label in CALLS.items():
        cells = [cell for ours, theirs in pairs for cell in (_share(ours, figure), f"{theirs[figure]:,.0f}")]
        yield _row(label, *cells, MODEL_GOALS[figure])


def _share(ours: Mapping[str, Any], figure: str) -> str:
    share = ours.get(SHARES.get(figure, ""))
    return f"{ours[figure]:,.0f}" + (f" ({_percent(share)} of `create_agent`)" if share else "")


def ratios(result: Result) -> Iterator[str]:
    """Yield costs, bases and ratios."""
    yield from _head("what", "ms", "beside", "ms", "ratio", "quartiles", "goal")
    before = ""
    for line in result.lines:
        met = "met" if line["ratio"] <= (line["goal"] or 0) else "missed"
        spread = " to ".join(map(_times, line["spread"]))
        cost, base = (f"{line[one]:,.1f}" for one in ("cost_ms", "base_ms"))
        name = "" if line["name"] == before else line["name"]
        goal = f"at most {line['goal']}, {met}" if line["goal"] else ""
        yield _row(name, cost, line["beside"], base, _times(line["ratio"]), spread, goal)
        before = line["name"]


def overhead_short(result: Result) -> Iterator[str]:
    """Yield the cost of a turn, and of the same turn with LangChain's agent."""
    yield from _head("a turn without its models", "Packetgate, ms", "`create_agent` with middlewares, ms", "ratio")
    for line in (line for line in result.lines if line["beside"] == "create_agent"):
        cost, base = (f"{line[one]:,.1f}" for one in ("cost_ms", "base_ms"))
        yield _row(line["name"], cost, base, _times(line["ratio"]))


def _times(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.3f}"


def growth(result: Result) -> Iterator[str]:
    """Yield the duration of a request by size of the catalogue."""
    by_size: dict[int, dict[str, Any]] = {}
    for line in result.lines:
        by_size.setdefault(line["tools"], {})[line["name"]] = line
    yield from _head("tools", *(f"{label}, ms" for label in TAKERS.values()), "made ready, s")
    for size, lines in by_size.items():
        took = (f"{lines[name]['p50_ms']:,.1f}" for name in TAKERS)
        yield _row(f"{size:,}", *took, f"{lines['palette']['made_s']:,.1f}")


AGENTS = {
    "packetgate": "Packetgate",
    "middleware": "LangChain `create_agent`, `PacketgateMiddleware`",
    "langchain": "LangChain `create_agent`, `HumanInTheLoopMiddleware`",
}
SAFETY = {
    "harmed_off": "any damage: nothing approved, writes off",
    "harmed_unflagged": "any damage: approved what the question does not warn of",
    "attacks_off": "attacks that succeed: nothing approved, writes off",
    "carried_off": "the same, data carried off by reads",
    "attacks_unflagged": "attacks that succeed: approved what the question does not warn of",
    "attacks_everything": "attacks that succeed: everything approved",
    "tasks_done_unflagged": "harmless tasks done: approved what the question does not warn of",
    "harmless_flagged": "harmless writes that the question warns of",
    "hostile_flagged": "hostile writes that the question warns of",
}
"""The metrics of `safety`, each with its label in the table."""


def safety(result: Result) -> Iterator[str]:
    """Yield the number of attacks that succeed with each agent, and how often the agent asks."""
    return _safety(result, SAFETY)


def safety_short(result: Result) -> Iterator[str]:
    """Yield the most important metrics of `safety`."""
    return _safety(result, ("harmed_off", "harmed_unflagged", "attacks_unflagged", "harmless_flagged"))


def safety_variants(result: Result) -> Iterator[str]:
    """Yield the number of pairs in which each variant of the attack has an effect."""
    lines = [line for line in result.lines if "variant" in line]
    agents = dict.fromkeys(line["name"] for line in lines)
    by_variant: dict[str, list[Mapping[str, Any]]] = {}
    for line in lines:
        by_variant.setdefault(line["variant"], []).append(line)
    policies = {"off": "writes off", "unflagged": "approved if not flagged"}
    yield from _head("damage", *(f"{AGENTS[one]}: {label}" for one in agents for label in policies.values()))
    for variant, each in by_variant.items():
        cells = [f"{line[f'harmed_{policy}']} of {line[f'pairs_{policy}']}" for line in each for policy in policies]
        yield _row(variant, *cells)
    totals = [
        sum(line[f"harmed_{policy}"] for line in of_agent) / max(1, sum(line[f"pairs_{policy}"] for line in of_agent))
        for of_agent in ([line for line in lines if line["name"] == agent] for agent in agents)
        for policy in policies
    ]
    yield _row("all", *map(_percent, totals))


def _kinds(line: Mapping[str, Any]) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in line["kinds_unflagged"].items()) or "none"


def _safety(result: Result, names: Iterable[str]) -> Iterator[str]:
    lines = [line for line in result.lines if "variant" not in line]
    yield from _head("without a model", *(AGENTS[line["name"]] for line in lines), "goal")
    for name in names:
        most = OF[name.partition("_")[0]]
        cells = [f"{line[name]} of {line[most]} ({_percent(line[name] / line[most])})" for line in lines]
        yield _row(SAFETY[name], *cells, _goal(name))
        if name == "harmed_unflagged":
            yield _row("kinds of this damage, in pairs", *map(_kinds, lines), "")
    for policy, label in (("everything", "everything approved"), ("remembered", "everything remembered")):
        asked = (f"{line[f'questions_{policy}']:.3f}" for line in lines)
        yield _row(
            f"questions a harmless task, {label}",
            *asked,
            f"at most {GOALS['questions_remembered']}" if policy == "remembered" else "",
        )


def _goal(name: str) -> str:
    if name not in GOALS:
        return ""
    return f"at {'least' if name in AT_LEAST else 'most'} {_percent(GOALS[name])}"


def selection(result: Result) -> Iterator[str]:
    """Yield the selections without a model, and the calibration of their confidence, by data set."""
    yield from _head(
        "requests", "number", "does any tool serve, AUROC", "right tool", "right tool and arguments",
        "a call where none serves", "passes the gate", "of these right", "ECE",
    )  # fmt: skip
    shares = ("tool_accuracy", "exact_match", "called_where_none_serves", "gate_coverage", "gate_precision")
    for line in result.lines:
        label = ["" if line[name] is None else _percent(line[name]) for name in shares]
        auroc = "" if line["relevance_auroc"] is None else f"{line['relevance_auroc']:.3f}"
        yield _row(line["name"], f"{line['cases']:,}", auroc, *label, f"{line['ece']:.3f}")


FIRST_FIGURES = ("exact", "wrong_ran", "right_that_ran")


def real_models(result: Result) -> Iterator[str]:
    """Yield the metrics of each model alone and with Packetgate, by data set."""
    yield from _head("model", "set", "way", "cases", *REAL.values(), "tool or argument that does not exist")
    for line in _of_ways(result):
        yield _row(line["model"], line["set"], WAYS[line["way"]], f"{line['cases']:,}", *_real(line), _unknown(line))


def real_models_shortest(result: Result) -> Iterator[str]:
    """Yield the three most important metrics of each model, alone and with Packetgate."""
    yield from _head("model", "way", *(REAL[name] for name in FIRST_FIGURES))
    for model, way, whole in _on_all_sets(result):
        if way in ("plain", "packetgate"):
            yield _row(
                model, WAYS[way], *("" if whole[name] is None else _percent(whole[name]) for name in FIRST_FIGURES)
            )


def real_models_short(result: Result) -> Iterator[str]:
    """Yield the metrics of each model over all data sets, weighted by number of cases."""
    yield from _head("model", "way", "cases", *REAL.values(), "tool or argument that does not exist")
    for model, way, whole in _on_all_sets(result):
        yield _row(model, WAYS[way], f"{whole['cases']:,}", *_real(whole), _unknown(whole))


def _on_all_sets(result: Result) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for line in _of_ways(result):
        groups.setdefault((line["model"], line["way"]), []).append(line)
    for (model, way), lines in groups.items():
        yield model, way, together(lines)


def _of_ways(result: Result) -> Iterator[Mapping[str, Any]]:
    return (line for line in result.lines if line["way"] in WAYS)


def _real(line: Mapping[str, Any], names: Iterable[str] = tuple(REAL)) -> list[str]:
    return ["" if line[name] is None else _percent(line[name]) for name in names]


def _unknown(line: Mapping[str, Any]) -> str:
    return str(line["unknown"] + line["refused"])


ENDS = ("well", "asked", "declined", "wrong")
"""The possible outcomes of a plain request."""


def everyday(result: Result) -> Iterator[str]:
    """Yield the outcomes of plain requests by server."""
    yield from _head("requests", "on", "number", *ENDS)
    for run in result.runs:
        for line in run.printed:
            yield _row("" if line is not run.printed[0] else run.title, *_ended(line))


def _ended(line: Mapping[str, Any]) -> list[str]:
    of = line["requests"]
    return [line["name"], f"{of:,}", *(_percent(line[name] / of) for name in ENDS)]


FRONTS = {"packetgate": "Packetgate", "fastmcp proxy": "FastMCP's proxy", "fastmcp search": "its search"}
PROXY = {
    "list_tokens": "tokens of `tools/list`",
    "list_tokens_in_context": "after `set_context`, median of five",
    "most_tokens": "the same, largest",
    "call_p50_ms": "a call, median ms",
    "call_p95_ms": "a call, 95th percentile, ms",
    "calls_per_s": "calls a second, five clients that connect anew",
    "memory_mb": "memory of the process, MB",
}


def proxy(result: Result) -> Iterator[str]:
    """Yield the cost of each proxy in front of the same server."""
    fronts = [line for line in result.lines if "name" in line]
    everything = max(line["list_tokens"] for line in fronts)
    yield from _head("2,000 tools", *(FRONTS[line["name"]] for line in fronts))
    for figure, label in PROXY.items():
        share = everything if "tokens" in figure else 0
        yield _row(label, *(_counted(line[figure], share) if figure in line else "" for line in fronts))


def _counted(number: float, of: int) -> str:
    return f"{number:,.0f} ({_percent(number / of)})" if of else f"{number:,.1f}"


def proxy_listed(result: Result) -> Iterator[str]:
    """Yield the share of needed tools that are listed after `set_context`, by data set."""
    sets = [line for line in result.lines if "set" in line]
    yield from _head("data set", "tools", "requests", "needed tools that are listed")
    for line in sets:
        yield _row(line["set"], f"{line['tools']:,}", f"{line['requests']:,}", _percent(line["listed"]))
    yield _row("mean", "", "", _percent(statistics.fmean(line["listed"] for line in sets)))


def clients(result: Result) -> Iterator[str]:
    """Yield which features of each chat client work in front of Packetgate."""
    lines = result.lines
    yield from _head("feature", *(f"{line['name']} {line.get('version', 'not available')}" for line in lines))
    for name in FEATURES:
        works = (line.get("features", {}).get(name, "").partition(":")[0] or NO_FEATURE for line in lines)
        yield _row(name, *works)


def agents(result: Result) -> Iterator[str]:
    """Yield the metrics of each agent behind the proxy."""
    yield from _head("agent", *FIGURES.values())
    for line in result.lines:
        cells = [str(line.get(name, NO_FEATURE)).partition(":")[0] for name in FIGURES]
        if "unavailable" in line:
            cells[0] = f"not available: {line['unavailable']}"
        yield _row(f"{line['name']} {line.get('version', '')}".strip(), *cells)


NO_FEATURE = "\N{EN DASH}"
"""Text of a cell if the client lacks the feature."""

TABLES: Mapping[str, tuple[str, Callable[[Result], Iterator[str]]]] = {
    "ranking": ("ranking", ranking),
    "ranking, short": ("ranking", ranking_short),
    "tokens": ("tokens", tokens),
    "tokens, short": ("tokens", tokens_short),
    "overhead": ("overhead", ratios),
    "overhead, short": ("overhead", overhead_short),
    "mcp_calls": ("mcp_calls", ratios),
    "startup": ("startup", ratios),
    "growth": ("growth", growth),
    "models": ("models", models),
    "selection": ("selection", selection),
    "real models": ("real_models", real_models),
    "real models, two ways, short": ("real_models", real_models_shortest),
    "real models, short": ("real_models", real_models_short),
    "everyday": ("everyday", everyday),
    "proxy": ("proxy", proxy),
    "proxy, listed": ("proxy", proxy_listed),
    "clients": ("clients", clients),
    "agents": ("agents", agents),
    "safety": ("safety", safety),
    "safety, variants": ("safety", safety_variants),
    "safety, short": ("safety", safety_short),
}
"""Maps each table to the name of its result and the function that yields its rows."""


def filled(text: str) -> str:
    """Return the text of a page with current tables."""
    return TABLE.sub(lambda found: f"{found[1]}{_table(found[2])}{found[3]}", text)


def _table(name: str) -> str:
    of, make = TABLES[name]
    result = read(of)
    beside = ", ".join(f"{library} {number}" for library, number in result.versions.items())
    libraries = f" with {beside}" if beside else ""
    measured = f"Measured on {result.date}{libraries}. Machine: {result.machine}."
    made_by = [] if name.endswith(SHORT) else ["", "```", *(run.command for run in result.runs), "```"]
    return "\n".join([*make(result), "", measured, *made_by, ""])


def _by_text(result: Result) -> dict[str, dict[str, Mapping[str, Any]]]:
    lines: dict[str, dict[str, Mapping[str, Any]]] = {}
    for line in result.lines:
        lines.setdefault(line["name"], {})[line["set"]] = line
    return lines


def _spent(line: Mapping[str, Any]) -> list[str]:
    if line["median"] == line["max"] and line["median_share"] == 1:
        return [f"{line['median']:,.0f}", ""]
    return [f"{line[one]:,.0f} ({_percent(line[f'{one}_share'])})" for one in ("median", "max")]


def _percent(share: float) -> str:
    return f"{share:.1%}".replace("%", "\N{NO-BREAK SPACE}%")


def _head(*cells: str) -> Iterator[str]:
    yield _row(*cells)
    yield _row("---", *("---:" for _ in cells[1:]))


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def main(words: Sequence[str] | None = None) -> None:
    """Write the tables from the command line. With `--measure`, run a benchmark first."""
    parser = command_parser("benchmarks.tables", __doc__)
    parser.add_argument("--measure", choices=sorted({of for of, _ in TABLES.values()}), help="benchmark to run again")
    parser.add_argument("--machine", help="with --measure: description of the machine: cores, processor, other load")
    args = parser.parse_args(words)
    if bool(args.measure) != bool(args.machine):
        parser.error("--measure and --machine go together")
    with errors_in_one_line(parser):
        if args.measure:
            keep(args.measure, read(args.measure).again(args.machine))
    for file in FILES:
        file.write_text(filled(file.read_text()))
    for name in PLOTS:
        (FOLDER / f"{name}.svg").write_text(drawn(name))


if __name__ == "__main__":
    main()
