"""Draw the plots in docs/plots/ from the results in benchmarks/results/. The same results give the same bytes."""

from collections.abc import Callable, Collection, Mapping
from io import StringIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.real_models.together import REAL, WAYS, together
from benchmarks.results_kept import read

FOLDER = Path(__file__).parents[1] / "docs" / "plots"
INK = "#495057"
INKS = f"<style>svg {{ color: {INK} }} @media (prefers-color-scheme: dark) {{ svg {{ color: #ced4da }} }}</style>"
"""The colour of text and axes, on a light and on a dark page."""
STYLE: Any = {
    "svg.hashsalt": "packetgate",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.titlesize": "medium",
    "axes.spines.top": False,
    "axes.spines.right": False,
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK),
    **dict.fromkeys(("axes.facecolor", "savefig.facecolor"), "none"),
}
COLOURS = ("#1098ad", "#f76707", "#868e96", "#c99a00")
"""Colours of the series; the first is Packetgate's."""

TAKERS = {
    "palette": "Packetgate's palette",
    "ranking": "its ranking alone",
    "fastmcp": "FastMCP's ranking",
    "bm25s": "bm25s",
}
TEXTS = {
    "full catalogue": "every tool in full",
    "packetgate, tool part": "Packetgate, a model on your machine: the tools' part of the prompt",
    "packetgate, whole selection prompt": "Packetgate, a model on your machine: the whole prompt",
    "packetgate, whole selection prompt of a hosted model": "Packetgate, a hosted model: the whole prompt",
    "langchain LLMToolSelectorMiddleware": "LangChain: the whole prompt, and the answer's schema",
    "fastmcp BM25SearchTransform": "FastMCP: the tools listed, and the result of one search",
}
SETS = {"livemcpbench": "LiveMCPBench", "filesystem": "npm filesystem server"}

Line = Mapping[str, Any]
Points = dict[str, list[tuple[float, float, float]]]
"""Maps each name to points: x, y, and the top of a band above y."""


def drawn(name: str) -> str:
    """Return a plot as SVG."""
    draw, width, height = PLOTS[name]
    with mpl.rc_context(STYLE):
        figure = Figure((width, height), layout="constrained")
        draw(figure, read(name).lines)
        written = StringIO()
        figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
    svg = written.getvalue().replace(INK, "currentColor").replace("<defs>", f"{INKS}<defs>", 1)
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


def overhead(figure: Figure, lines: list[Line]) -> None:
    """Draw the duration of a turn by number of tools, one panel per place of checkpoints."""
    panels: dict[str, Points] = {}
    for line in lines:
        where, _, rest = line["name"].partition(", ")
        if rest.endswith(" tools") and not rest.startswith("from "):
            tools, points = int(rest.split()[0].replace(",", "")), panels.setdefault(where, {})
            for name, ms in (("Packetgate", line["cost_ms"]), (line["beside"], line["base_ms"])):
                points.setdefault(name, []).append((tools, ms, ms))
    for axes, (where, points) in zip(_panels(figure, len(panels)), panels.items(), strict=True):
        _curves(axes, points, "time of a turn, ms")
        axes.set_title(where if "checkpoints" in where else f"checkpoints: {where}")
        axes.label_outer()


def growth(figure: Figure, lines: list[Line]) -> None:
    """Draw the duration of a request by number of tools: the median, and a band up to the 95th percentile."""
    points: Points = {}
    for line in lines:
        points.setdefault(TAKERS[line["name"]], []).append((line["tools"], line["p50_ms"], line["p95_ms"]))
    _curves(figure.add_subplot(), points, "time of a request, ms: median to 95th percentile")


def calls(figure: Figure, lines: list[Line]) -> None:
    """Draw the duration of calls, one panel per number of concurrent calls."""
    groups: dict[str, dict[str, float]] = {}
    for line in lines:
        groups.setdefault(line["name"], {"Packetgate": line["cost_ms"]})[line["beside"]] = line["base_ms"]
    for axes, (name, ms) in zip(_panels(figure, len(groups)), groups.items(), strict=True):
        _dots(axes, {of: (one, one) for of, one in ms.items()}, "time, ms")
        axes.set_title(name)


def startup(figure: Figure, lines: list[Line]) -> None:
    """Draw the processor time of each start."""
    bars = {line["name"]: line["cost_ms"] for line in lines}
    base = {lines[0]["beside"]: lines[0]["base_ms"]}
    axes = figure.add_subplot()
    _bars(axes, bars | base, "processor time, ms", ours=bars)
    axes.xaxis.set_major_formatter("{x:,g}")


def tokens(figure: Figure, lines: list[Line]) -> None:
    """Draw the tokens of the tools in the prompt, median and largest, one panel per data set."""
    sets = {line["set"]: line["tools"] for line in lines}
    for axes, (name, tools) in zip(_panels(figure, len(sets)), sets.items(), strict=True):
        found = {line["name"]: (line["median"], line["max"]) for line in lines if line["set"] == name}
        shown = {label.replace(": ", ":\n", 1): found[text] for text, label in TEXTS.items()}
        _dots(axes, shown, "tokens: median, and the largest")
        axes.set_title(f"{SETS[name]}, {tools:,} tools")


def real_models(figure: Figure, lines: list[Line]) -> None:
    """Draw right calls, wrong calls that run, and right calls that run, of each model alone and with Packetgate."""
    models = list(dict.fromkeys(line["model"] for line in lines))
    for model, row in zip(models, figure.subfigures(len(models), 1, squeeze=False)[:, 0], strict=True):
        row.suptitle(model, x=0.01, ha="left", fontweight="bold")
        ways = {way: together([line for line in lines if (line["model"], line["way"]) == (model, way)]) for way in WAYS}
        for axes, (name, note) in zip(_panels(row, len(SHARES)), SHARES.items(), strict=True):
            bars = {text: 100 * ways[way][name] for way, text in WAYS.items()}
            _bars(axes, bars, "%")
            axes.set(xlim=(0, 118), xticks=range(0, 101, 25), title=REAL[name] + note)


def _panels(figure: Any, number: int) -> list[Axes]:
    """Return axes side by side, with one scale."""
    return list(figure.subplots(1, number, sharex=True, sharey=True, squeeze=False)[0])


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def _curves(axes: Axes, points: Points, text: str) -> None:
    for (name, own), colour in zip(points.items(), COLOURS, strict=False):
        tools, ms, tops = zip(*dict.fromkeys(own), strict=True)
        axes.plot(tools, ms, marker="o", markersize=3, color=colour, label=name)
        if tops != ms:
            axes.fill_between(tools, ms, tops, color=colour, alpha=0.15, linewidth=0)
    axes.set(xscale="log", yscale="log", xlabel="number of tools", ylabel=text)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:,g}")
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize="small")


def _dots(axes: Axes, ranges: Mapping[str, tuple[float, float]], text: str) -> None:
    """Draw the start of each range as a dot and a different end as a ring, on a logarithmic scale."""
    for place, (name, (value, most)) in enumerate(ranges.items()):
        colour = COLOURS[0 if name.startswith("Packetgate") else 2]
        axes.plot([value, most], [place, place], color=colour, linewidth=1)
        axes.plot([most], [place], "o", color=colour, markerfacecolor="none")
        axes.plot([value], [place], "o", color=colour)
        label = _number(value) if most == value else f"{_number(value)} to {_number(most)}"
        axes.annotate(label, (most, place), (7, 0), textcoords="offset points", va="center", fontsize="small")
    axes.set(xscale="log", yticks=range(len(ranges)), yticklabels=ranges, ylim=(len(ranges) - 0.5, -0.5), xlabel=text)
    axes.xaxis.set_major_formatter("{x:,g}")
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    low, high = axes.get_xlim()
    axes.set_xlim(low, max(high, 8 * max(most for _, most in ranges.values())))  # room for the last label


def _bars(axes: Axes, bars: Mapping[str, float], text: str, ours: Collection[str] = ()) -> None:
    colours = [COLOURS[0 if name in ours or name.startswith("Packetgate") else 2] for name in bars]
    shown = axes.barh([*bars], [*bars.values()], color=colours)
    axes.bar_label(shown, [_number(value) for value in bars.values()], padding=2, fontsize="small")
    axes.set_ylim(len(bars) - 0.5, -0.5)
    axes.margins(x=0.2)
    axes.set_xlabel(text)


SHARES = {"exact": "", "wrong_ran": ",\nless is better", "right_that_ran": ""}
"""The drawn metrics of real models, each with a note."""

PLOTS: Mapping[str, tuple[Callable[[Figure, list[Line]], None], float, float]] = {
    "overhead": (overhead, 9, 3.2),
    "mcp_calls": (calls, 9, 2.8),
    "startup": (startup, 6, 2.8),
    "growth": (growth, 6, 3.6),
    "tokens": (tokens, 9, 4),
    "real_models": (real_models, 9, 4.4),
}
"""Maps each result to the function that draws its plot, and to the width and height in inches."""
