"""The tables of README.md and docs/, and the plots in docs/plots/, made of the results kept in benchmarks/results/.

A table stands between `<!-- table: NAME -->` and `<!-- end of table -->`. With --measure, what is kept of a benchmark
is measured anew first; the data sets are those of the folder that PACKETGATE_DATA names.
"""

import argparse
import re
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.clients.client import FEATURES
from benchmarks.plots import FOLDER, PLOTS, drawn
from benchmarks.real_models.together import REAL, WAYS, together
from benchmarks.results_kept import Result, keep, read
from benchmarks.safety.figures import AT_LEAST, GOALS
from packetgate.state.errors import ConfigError

ROOT = Path(__file__).parents[1]
FILES = (ROOT / "README.md", *(ROOT / "docs" / page for page in ("benchmarks.md", "comparison.md", "proxy.md")))
TABLE = re.compile(r"(<!-- table: (.+?) -->\n).*?(<!-- end of table -->)", re.DOTALL)

SHORT = ", short"
"""How the name of a table ends that leaves out the commands it is made by."""

RANKERS = {"packetgate": "Packetgate", "fastmcp": "FastMCP", "bm25s": "bm25s"}
TAKERS = {
    "palette": "Packetgate's palette",
    "ranking": "its ranking alone",
    "fastmcp": "FastMCP's ranking",
    "bm25s": "bm25s",
}
TEXTS = {
    "full catalogue": "every tool in full",
    "packetgate, tool part": "Packetgate: the tools' part of the prompt",
    "packetgate, whole selection prompt": "Packetgate: the whole prompt, and the answer's schema",
    "langchain LLMToolSelectorMiddleware": "LangChain: the whole prompt, and the answer's schema",
    "fastmcp BM25SearchTransform": "FastMCP: the tools listed, and the result of one search",
}
SETS = {"livemcpbench": "LiveMCPBench", "filesystem": "npm filesystem server"}

CALLS = {
    "calls": "calls of a model",
    "prompt": "prompt tokens, schemas included",
    "cached": "the same where a provider keeps prompts, at a tenth",
    "output": "tokens written",
}
SHARES = {"prompt": "share", "cached": "cached_share"}
MODEL_GOALS = {
    "calls": "at most 3",
    "prompt": "at most an eighth",
    "cached": "at most its price",
    "output": "at most 106",
}


def ranking(result: Result) -> Iterator[str]:
    """Yield, for each data set, what each ranker reached."""
    yield from _head("data set", "requests", "tools", "ranking", "R@1", "R@5", "R@10", "nDCG@10", "p50 ms", "p95 ms")
    for run in result.runs:
        for line in run.printed:
            first = line is run.printed[0]
            size = (f"[{run.title}]({run.origin})", f"{line['queries']:,}", f"{line['tools']:,}")
            found = (f"{line[figure]:.3f}" for figure in ("recall@1", "recall@5", "recall@10", "ndcg@10"))
            took = (f"{line[figure]:.2f}" for figure in ("p50_ms", "p95_ms"))
            yield _row(*(size if first else ("", "", "")), RANKERS[line["name"]], *found, *took)


def ranking_short(result: Result) -> Iterator[str]:
    """Yield, for each data set, the right tools among the first five, and the time."""
    yield from _head("data set", "tools", "Packetgate, first five", "FastMCP", "Packetgate, median ms", "FastMCP")
    for run in result.runs:
        ours, theirs, *_ = run.printed
        found = [_percent(line["recall@5"]) for line in (ours, theirs)]
        took = [f"{line['p50_ms']:.1f}" for line in (ours, theirs)]
        yield _row(f"[{run.title}]({run.origin})", f"{ours['tools']:,}", *found, *took)


def tokens(result: Result) -> Iterator[str]:
    """Yield what choosing among the tools takes, median and largest."""
    lines = _by_text(result)
    names = [f"{SETS[of]}, {one['tools']:,} tools" for of, one in lines["full catalogue"].items()]
    yield from _head("tokens to choose among", *(part for name in names for part in (name, "largest")))
    for text, shown in TEXTS.items():
        yield _row(shown, *(part for one in lines[text].values() for part in _spent(one)))


def tokens_short(result: Result) -> Iterator[str]:
    """Yield the medians alone."""
    lines = _by_text(result)
    names = [f"{SETS[of]}, {one['tools']:,} tools" for of, one in lines["full catalogue"].items()]
    yield from _head("tokens to choose among", *names)
    for text, shown in TEXTS.items():
        yield _row(shown, *(_spent(one)[0] for one in lines[text].values()))


def models(result: Result) -> Iterator[str]:
    """Yield what a plain read takes of a model, on each side, and what that comes to."""
    lines = result.runs[0].printed
    pairs = list(zip(lines[::2], lines[1::2], strict=True))
    sides = (f"{ours['asked']}: {name}" for ours, _ in pairs for name in ("Packetgate", "`create_agent`"))
    yield from _head("a plain read, sixty tools, medians", *sides, "goal")
    for figure, told in CALLS.items():
        cells = [cell for ours, theirs in pairs for cell in (_share(ours, figure), f"{theirs[figure]:,.0f}")]
        yield _row(told, *cells, MODEL_GOALS[figure])


def _share(ours: Mapping[str, Any], figure: str) -> str:
    share = ours.get(SHARES.get(figure, ""))
    return f"{ours[figure]:,.0f}" + (f" ({_percent(share)} of the other)" if share else "")


def ratios(result: Result) -> Iterator[str]:
    """Yield costs beside their bases."""
    yield from _head("what", "ms", "beside", "ms", "ratio", "quartiles", "goal")
    before = ""
    for line in (line for run in result.runs for line in run.printed):
        met = "met" if line["ratio"] <= (line["goal"] or 0) else "missed"
        spread = " to ".join(map(_times, line["spread"]))
        cost, base = (f"{line[one]:,.1f}" for one in ("cost_ms", "base_ms"))
        name = "" if line["name"] == before else line["name"]
        goal = f"at most {line['goal']}, {met}" if line["goal"] else ""
        yield _row(name, cost, line["beside"], base, _times(line["ratio"]), spread, goal)
        before = line["name"]


def overhead_short(result: Result) -> Iterator[str]:
    """Yield what a turn costs beside an agent that does the same."""
    yield from _head("a turn without its models", "Packetgate, ms", "`create_agent` with middlewares, ms", "ratio")
    for line in (line for run in result.runs for line in run.printed if line["beside"] == "create_agent"):
        cost, base = (f"{line[one]:,.1f}" for one in ("cost_ms", "base_ms"))
        yield _row(line["name"], cost, base, _times(line["ratio"]))


def _times(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.3f}"


def growth(result: Result) -> Iterator[str]:
    """Yield, for each size of a catalogue, what a request takes."""
    by_size: dict[int, dict[str, Any]] = {}
    for line in (line for run in result.runs for line in run.printed):
        by_size.setdefault(line["tools"], {})[line["name"]] = line
    yield from _head("tools", *(f"{told}, ms" for told in TAKERS.values()), "made ready, s")
    for size, lines in by_size.items():
        took = (f"{lines[name]['p50_ms']:,.1f}" for name in TAKERS)
        yield _row(f"{size:,}", *took, f"{lines['palette']['made_s']:,.1f}")


AGENTS = {
    "packetgate": "Packetgate",
    "middleware": "LangChain `create_agent`, `PacketgateMiddleware`",
    "langchain": "LangChain `create_agent`, `HumanInTheLoopMiddleware`",
}
SAFETY = {
    "attacks_off": "attacks that succeed: nothing approved, writes off",
    "carried_off": "the same, data carried off by reads",
    "attacks_unflagged": "attacks that succeed: approved what the question does not warn of",
    "attacks_everything": "attacks that succeed: everything approved",
    "tasks_done_unflagged": "harmless tasks done: approved what the question does not warn of",
    "harmless_flagged": "harmless writes that the question warns of",
    "hostile_flagged": "hostile writes that the question warns of",
}
"""The shares of `safety`, each with what it is called."""
OF = {"attacks": "pairs", "carried": "carried_pairs", "tasks": "tasks", "harmless": "harmless_writes"}
"""Of how many each is, by its first word; of all others, `hostile_writes`."""


def safety(result: Result) -> Iterator[str]:
    """Yield what each agent let through, and how often it asked."""
    return _safety(result, SAFETY)


def safety_short(result: Result) -> Iterator[str]:
    """Yield what most people ask for."""
    return _safety(result, ("attacks_off", "attacks_unflagged", "harmless_flagged"))


def _safety(result: Result, names: Iterable[str]) -> Iterator[str]:
    lines = [line for run in result.runs for line in run.printed]
    yield from _head("without a model", *(AGENTS[line["name"]] for line in lines), "goal")
    for name in names:
        most = OF.get(name.partition("_")[0], "hostile_writes")
        cells = [f"{line[name]} of {line[most]} ({_percent(line[name] / line[most])})" for line in lines]
        yield _row(SAFETY[name], *cells, _goal(name))
    for policy, told in (("everything", "everything approved"), ("remembered", "everything remembered")):
        asked = (f"{line[f'questions_{policy}']:.3f}" for line in lines)
        yield _row(
            f"questions a harmless task, {told}",
            *asked,
            f"at most {GOALS['questions_remembered']}" if policy == "remembered" else "",
        )


def _goal(name: str) -> str:
    if name not in GOALS:
        return ""
    return f"at {'least' if name in AT_LEAST else 'most'} {_percent(GOALS[name])}"


def selection(result: Result) -> Iterator[str]:
    """Yield, for each data set, what was chosen without a model, and how far its confidence can be believed."""
    yield from _head(
        "requests", "number", "does any tool serve, AUROC", "right tool", "right tool and arguments",
        "a call where none serves", "passes the gate", "of these right", "ECE",
    )  # fmt: skip
    shares = ("tool_accuracy", "exact_match", "called_where_none_serves", "gate_coverage", "gate_precision")
    for line in (line for run in result.runs for line in run.printed):
        told = ["" if line[name] is None else _percent(line[name]) for name in shares]
        auroc = "" if line["relevance_auroc"] is None else f"{line['relevance_auroc']:.3f}"
        yield _row(line["name"], f"{line['cases']:,}", auroc, *told, f"{line['ece']:.3f}")


FIRST_FIGURES = ("exact", "wrong_ran", "right_that_ran")


def real_models(result: Result) -> Iterator[str]:
    """Yield what each model chooses, alone and behind Packetgate, on each set."""
    yield from _head("model", "set", "way", "cases", *REAL.values(), "tool or argument that does not exist")
    for line in _of_ways(result):
        yield _row(line["model"], line["set"], WAYS[line["way"]], f"{line['cases']:,}", *_real(line), _unknown(line))


def real_models_shortest(result: Result) -> Iterator[str]:
    """Yield the three figures of each model that matter first, alone and behind Packetgate."""
    yield from _head("model", "way", *(REAL[name] for name in FIRST_FIGURES))
    for model, way, whole in _on_all_sets(result):
        if way in ("plain", "packetgate"):
            yield _row(
                model, WAYS[way], *("" if whole[name] is None else _percent(whole[name]) for name in FIRST_FIGURES)
            )


def real_models_short(result: Result) -> Iterator[str]:
    """Yield the same on all sets together, each counted by its cases."""
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
    return (line for run in result.runs for line in run.printed if line["way"] in WAYS)


def _real(line: Mapping[str, Any], names: Iterable[str] = tuple(REAL)) -> list[str]:
    return ["" if line[name] is None else _percent(line[name]) for name in names]


def _unknown(line: Mapping[str, Any]) -> str:
    return str(line["unknown"] + line["refused"])


ENDS = ("well", "asked", "declined", "wrong")
"""How a plain request may end."""


def everyday(result: Result) -> Iterator[str]:
    """Yield how plain requests end, on each server."""
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
    """Yield what each front costs in front of the same server."""
    fronts = [line for run in result.runs for line in run.printed if "name" in line]
    everything = max(line["list_tokens"] for line in fronts)
    yield from _head("2,000 tools", *(FRONTS[line["name"]] for line in fronts))
    for figure, told in PROXY.items():
        share = everything if "tokens" in figure else 0
        yield _row(told, *(_counted(line[figure], share) if figure in line else "" for line in fronts))


def _counted(number: float, of: int) -> str:
    return f"{number:,.0f} ({_percent(number / of)})" if of else f"{number:,.1f}"


def proxy_listed(result: Result) -> Iterator[str]:
    """Yield how often the tools that a request needs are listed after `set_context`, by data set."""
    sets = [line for run in result.runs for line in run.printed if "set" in line]
    yield from _head("data set", "tools", "requests", "needed tools that are listed")
    for line in sets:
        yield _row(line["set"], f"{line['tools']:,}", f"{line['requests']:,}", _percent(line["listed"]))
    yield _row("mean", "", "", _percent(statistics.fmean(line["listed"] for line in sets)))


def clients(result: Result) -> Iterator[str]:
    """Yield which features of each chat client work in front of Packetgate."""
    lines = [line for run in result.runs for line in run.printed]
    yield from _head("feature", *(f"{line['name']} {line.get('version', 'not available')}" for line in lines))
    for name in FEATURES:
        works = (line.get("features", {}).get(name, "").partition(":")[0] or NOT_THERE for line in lines)
        yield _row(name, *works)


NOT_THERE = "\N{EN DASH}"
"""What the cell of a feature says that a client does not have."""

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
    "safety": ("safety", safety),
    "safety, middleware": ("safety_middleware", safety),
    "safety, short": ("safety", safety_short),
}
"""Each table by name: the result that it is made of, and how."""


def filled(text: str) -> str:
    """Return a page with its tables as the results are now."""
    return TABLE.sub(lambda found: f"{found[1]}{_table(found[2])}{found[3]}", text)


def _table(name: str) -> str:
    of, make = TABLES[name]
    result = read(of)
    beside = ", ".join(f"{library} {number}" for library, number in result.versions.items())
    libraries = f" with {beside}" if beside else ""
    measured = f"Measured on {result.date}{libraries}, on {result.machine}."
    made_by = [] if name.endswith(SHORT) else ["", "```", *(run.command for run in result.runs), "```"]
    return "\n".join([*make(result), "", measured, *made_by, ""])


def _by_text(result: Result) -> dict[str, dict[str, dict[str, Any]]]:
    lines: dict[str, dict[str, dict[str, Any]]] = {}
    for line in (line for run in result.runs for line in run.printed):
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
    """Write the tables, after measuring where that is asked for."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.tables", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--measure", choices=sorted({of for of, _ in TABLES.values()}), help="what to measure anew")
    parser.add_argument("--machine", help="with --measure: the machine in words: cores, processor, what else it does")
    given = parser.parse_args(words)
    if bool(given.measure) != bool(given.machine):
        parser.error("--measure and --machine go together")
    try:
        if given.measure:
            keep(given.measure, read(given.measure).again(given.machine))
    except ConfigError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        sys.exit(2)
    for file in FILES:
        file.write_text(filled(file.read_text()))
    for name in PLOTS:
        (FOLDER / f"{name}.svg").write_text(drawn(name))


if __name__ == "__main__":
    main()
