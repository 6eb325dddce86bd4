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
STYLE: Any = {"svg.hashsalt": "packetgate", "svg.fonttype": "none", "font.size": 9}
COLOURS = ("#0b7285", "#e8590c", "#868e96", "#ae8f00")
"""Colours; the first is Packetgate's."""

Line = Mapping[str, Any]
Points = dict[str, list[tuple[float, float]]]


def drawn(name: str) -> str:
    """Return a plot as SVG."""
    draw, width = PLOTS[name]
    with mpl.rc_context(STYLE):
        figure = Figure((width, 3.2), layout="constrained")
        draw(figure, [line for run in read(name).runs for line in run.printed])
        written = StringIO()
        figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
    return "\n".join(line.rstrip() for line in written.getvalue().splitlines()) + "\n"


def overhead(figure: Figure, lines: list[Line]) -> None:
    """Draw the duration of a turn by number of tools, one panel per place of checkpoints."""
    panels: dict[str, Points] = {}
    for line in lines:
        where, _, rest = line["name"].partition(", ")
        if rest.endswith(" tools") and not rest.startswith("from "):
            tools, points = int(rest.split()[0].replace(",", "")), panels.setdefault(where, {})
            for name, ms in (("Packetgate", line["cost_ms"]), (line["beside"], line["base_ms"])):
                points.setdefault(name, []).append((tools, ms))
    for place, (where, points) in enumerate(panels.items(), 1):
        axes = figure.add_subplot(1, len(panels), place, sharey=figure.axes[0] if figure.axes else None)
        _curves(axes, points, "ms a turn" if place == 1 else "")
        axes.set_title(where, fontsize="medium")


def growth(figure: Figure, lines: list[Line]) -> None:
    """Draw the duration of a request by number of tools."""
    points: Points = {}
    for line in lines:
        points.setdefault(line["name"], []).append((line["tools"], line["p50_ms"]))
    _curves(figure.add_subplot(), points, "ms a request, median")


def calls(figure: Figure, lines: list[Line]) -> None:
    """Draw the duration of calls, one panel per number of concurrent calls."""
    groups: dict[str, dict[str, float]] = {}
    for line in lines:
        groups.setdefault(line["name"], {"Packetgate": line["cost_ms"]})[line["beside"]] = line["base_ms"]
    for place, (name, bars) in enumerate(groups.items(), 1):
        axes = figure.add_subplot(1, len(groups), place, sharey=figure.axes[0] if figure.axes else None)
        _bars(axes, bars, f"{name}, ms")
        axes.label_outer()


def startup(figure: Figure, lines: list[Line]) -> None:
    """Draw the processor time of each start."""
    bars = {line["name"]: line["cost_ms"] for line in lines}
    base = {lines[0]["beside"]: lines[0]["base_ms"]}
    _bars(figure.add_subplot(), bars | base, "ms of processor time", ours=bars, log=False)


def tokens(figure: Figure, lines: list[Line]) -> None:
    """Draw the tokens of the tools in the prompt, one panel per data set."""
    sets = list(dict.fromkeys(line["set"] for line in lines))
    for place, name in enumerate(sets, 1):
        axes = figure.add_subplot(1, len(sets), place, sharey=figure.axes[0] if figure.axes else None)
        bars = {line["name"]: line["median"] for line in lines if line["set"] == name}
        _bars(axes, bars, f"{name}, tokens", log=False)
        axes.label_outer()


def real_models(figure: Figure, lines: list[Line]) -> None:
    """Draw right calls, and wrong calls that run, of each model alone and with Packetgate."""
    models = list(dict.fromkeys(line["model"] for line in lines))
    for row, model in enumerate(models):
        ways = {way: together([line for line in lines if (line["model"], line["way"]) == (model, way)]) for way in WAYS}
        for at, name in enumerate(("exact", "wrong_ran")):
            axes = figure.add_subplot(len(models), 2, 2 * row + at + 1)
            bars = {told: 100 * ways[way][name] for way, told in WAYS.items()}
            _bars(axes, bars, f"{model.removesuffix('.gguf')}: {REAL[name]}, %", log=False)
            axes.label_outer()


def _curves(axes: Axes, points: Points, told: str) -> None:
    for (name, own), colour in zip(points.items(), COLOURS, strict=False):
        axes.plot(*zip(*dict.fromkeys(own), strict=True), marker="o", markersize=3, color=colour, label=name)
    axes.set(xscale="log", yscale="log", xlabel="tools", ylabel=told)
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize="small")


def _bars(axes: Axes, bars: Mapping[str, float], told: str, ours: Collection[str] = (), *, log: bool = True) -> None:
    colours = [COLOURS[0 if name in ours or name.lower().startswith("packetgate") else 2] for name in bars]
    shown = axes.barh([*bars], [*bars.values()], color=colours, log=log)
    axes.bar_label(shown, fmt="{:,.0f}" if min(bars.values()) >= 100 else "{:,.1f}", padding=2, fontsize="small")
    axes.set_ylim(len(bars) - 0.5, -0.5)
    axes.margins(x=0.2)
    axes.minorticks_off()
    axes.set_xlabel(told)


PLOTS: Mapping[str, tuple[Callable[[Figure, list[Line]], None], float]] = {
    "overhead": (overhead, 9),
    "mcp_calls": (calls, 9),
    "startup": (startup, 6),
    "growth": (growth, 6),
    "tokens": (tokens, 9),
    "real_models": (real_models, 9),
}
"""By the name of the result: the function that draws the plot, and the width in inches."""
