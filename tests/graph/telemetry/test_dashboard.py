"""deploy/dashboard.json queries only metrics and labels that real turns record."""

import json
import re
from collections import defaultdict
from pathlib import Path

from prometheus_client import REGISTRY
from support.graphs import session
from support.notebook import Notebook
from support.prompts import BROKEN, call, review
from support.scripted_openai import HttpError, ScriptedOpenAI
from support.telemetry import Telemetry

from packetgate.deciders.protocols import Deciders

DASHBOARD = Path(__file__).parents[3] / "deploy/dashboard.json"
BY_PROMETHEUS = {"instance"}
"""Labels that the collector adds: which process it was."""
TARGETS = [
    (panel["title"], target["expr"], target["legendFormat"])
    for panel in json.loads(DASHBOARD.read_text())["panels"]
    for target in panel["targets"]
]

Told = dict[str, dict[str, set[str]]]


def told() -> Told:
    """Return the label values by metric and label, as Prometheus would read them."""
    found: Told = defaultdict(lambda: defaultdict(set))
    for family in REGISTRY.collect():
        for sample in family.samples:
            for label, value in sample.labels.items():
                found[sample.name][label].add(value)
    return found


async def every_kind_of_turn(by_model: Deciders, server: ScriptedOpenAI) -> None:
    """Run turns with everything that the panels count: a call, a miss, a fallback, a failed stage, a denial."""
    read_a, write_a = call("notebook.read_note", name="a"), call("notebook.write_note", name="a", text="b")
    async with session(by_model, Notebook(), allow_write_tools=True) as talk:
        server.script(read_a, review(0.9), "It says apples.")
        await talk.say("Read note a")
        server.script(read_a.replace("read_note", "burn_note"), read_a, review(0.9), "It says apples.")
        await talk.say("Read the note named a")
        server.script(write_a, review(0.9), "Then not.")
        await talk.ask('Write "b" to note a')
        await talk.reply("no")
    async with session(by_model, Notebook(), on_low_confidence="skip") as talk:
        server.script(read_a, "Fine!", "Fine!", HttpError(410))
        await talk.say("Read note a")
    async with session(by_model, Notebook()) as talk:
        server.script(BROKEN, BROKEN)
        await talk.ask("Read note a")
        server.script(call("notebook.read_note", name="nowhere"), review(0.9), "There is none.")
        await talk.ask("Read note nowhere")


async def test_each_panel_queries_recorded_metrics(
    telemetry: Telemetry, by_model: Deciders, scripted_openai: ScriptedOpenAI
) -> None:
    await every_kind_of_turn(by_model, scripted_openai)
    known = told()
    for title, query, legend in TARGETS:
        metrics = set(re.findall(r"\b(?:packetgate|gen_ai|mcp)_\w+(?=[\[{])", query))
        assert metrics, title
        for metric in metrics:
            assert metric in known, f"{title}: {metric}"
            grouped = re.findall(r"by \(([^)]*)\)", query)
            labels = {name.strip() for group in grouped for name in group.split(",")}
            labels |= set(re.findall(r"{{(\w+)}}", legend)) | set(re.findall(r'(\w+)!?="', query))
            assert labels - BY_PROMETHEUS <= known[metric].keys(), f"{title}: {metric}"
        for metric, chosen in re.findall(r"(\w+){([^}]*)}", query):
            for label, value in re.findall(r'(\w+)="([^"]*)"', chosen):
                assert value in known[metric][label], f"{title}: {label} is never {value}"
