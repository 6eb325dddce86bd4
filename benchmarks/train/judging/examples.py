"""Read the encoder's training examples: a request, a tool, whether it fits, and the words that fill each parameter."""

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.train.data import held_out, rows
from benchmarks.train.judging.intents import INTENTS, SLOTS, SNIPS
from benchmarks.train.own import catalogues
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.words import words_of

Span = tuple[int, int] | None
"""Character offsets in the request; None if no words fill the parameter."""


@dataclass(frozen=True)
class Tool:
    """A tool in the form that the encoder reads."""

    upstream_name: str
    full: str
    server: str = ""
    parameters: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    required: tuple[str, ...] = ()

    @classmethod
    def of(cls, row: Mapping[str, Any], *, server: bool = True) -> "Tool":
        """Return the tool of a row `{name, description, input_schema}`."""
        schema = row.get("input_schema") or {}
        properties = {name: part for name, part in schema.get("properties", {}).items() if isinstance(part, dict)}
        required = tuple(name for name in schema.get("required", ()) if name in properties)
        home = (row.get("server") or "") if server else ""
        return cls(row["name"], row.get("description") or "", home, properties, required)

    @classmethod
    def of_spec(cls, spec: ToolSpec) -> "Tool":
        """Return a tool of a catalogue."""
        return cls(spec.upstream_name, spec.full, spec.server, spec.parameters, spec.required)

    def varied(self, rng: random.Random) -> "Tool":
        """Return the tool with shuffled parameters, without some optional ones, and with or without its server."""
        names = [n for n in self.parameters if n in self.required or rng.random() < 0.85]
        rng.shuffle(names)
        return Tool(
            self.upstream_name,
            self.full,
            self.server if rng.random() < 0.5 else "",
            {name: self.parameters[name] for name in names},
            self.required,
        )

    @property
    def text(self) -> str:
        """Name and description, for the search for similar tools."""
        return f"{' '.join(words_of(self.upstream_name))}. {self.full[:200]}"


@dataclass(frozen=True)
class Example:
    """One training example."""

    source: str
    request: str
    tool: Tool
    fits: float
    spans: Mapping[str, Span] = field(default_factory=dict)
    """Targets by parameter. Other parameters get no training."""
    weight: float = 1.0
    """Weight of the label that says whether the tool fits."""


@dataclass(frozen=True)
class Labelled:
    """A catalogue, and requests with the tools that fit. The encoder learns to reject the other tools."""

    source: str
    tools: Mapping[str, Tool]
    requests: Sequence[tuple[str, frozenset[str]]]


def labelled(data: Path) -> Iterator[Labelled]:
    """Yield the sources whose wrong tools come from the nearest tools of the same catalogue."""
    for name, folder in (("metatool", "metatool_toole"), ("sealtools", "sealtools")):
        tools = {
            row["id"]: Tool.of(row) for row in rows(data / folder / "tools.jsonl") if not held_out(folder, row["id"])
        }
        asked = [(row["query"], frozenset(row["gold"])) for row in rows(data / folder / "train.jsonl")]
        yield Labelled(name, tools, [(query, gold) for query, gold in asked if gold <= tools.keys()])
    tools = {row["id"]: Tool.of(row) for row in rows(data / "gorilla_apibench" / "tools.jsonl")}
    asked = [
        (row["query"], frozenset([*row["gold"], *row["acceptable"]]))
        for row in rows(data / "gorilla_apibench" / "train.jsonl")
    ]
    yield Labelled("apibench", tools, asked)
    tools = {name: Tool(name, said) for name, said in INTENTS.items()}
    asked = [
        (row["query"], frozenset() if row["intent"] == "oos" else frozenset([row["intent"]]))
        for row in rows(data / "clinc150" / "train.jsonl")
    ]
    yield Labelled("clinc", tools, asked)


def of_sealtools(data: Path) -> Iterator[Example]:
    """Yield every call of Seal-Tools with the positions of its arguments, and the candidates that were not called."""
    tools = {row["id"]: Tool.of(row) for row in rows(data / "sealtools" / "tools.jsonl")}
    for row in rows(data / "sealtools" / "train.jsonl"):
        if any(held_out("sealtools", name) for name in row["gold"]):
            continue
        called = {call["tool"]: call["arguments"] for call in row["calls"]}
        for name, arguments in called.items():
            tool = tools[name]
            spans = spans_of(row["query"], arguments, tool)
            yield Example("sealtools", row["query"], tool, 1.0, spans)
        for name in row["candidates"]:
            if name not in called and not held_out("sealtools", name):
                yield Example("sealtools", row["query"], tools[name], 0.0)


def spans_of(request: str, arguments: Mapping[str, Any], tool: Tool) -> dict[str, Span]:
    """Return the position of each argument that occurs in the request."""
    spans: dict[str, Span] = {name: None for name in tool.parameters if name not in arguments}
    for name, value in arguments.items():
        found = _find(request, value) if name in tool.parameters else None
        if found:
            spans[name] = found
    return spans


def _find(request: str, value: Any) -> Span:
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, list):
        found = [_find(request, one) for one in value]
        ends = [span for span in found if span]
        if not ends or len(ends) < len(found):
            return None
        return min(start for start, _ in ends), max(end for _, end in ends)
    for said in _sayings(value):
        match = re.search(rf"(?<!\w){re.escape(said)}(?!\w)", request, re.IGNORECASE)
        if match:
            return match.span()
    return None


def _sayings(value: Any) -> Iterator[str]:
    yield str(value)
    if isinstance(value, int | float):
        yield f"{value:,}"
        yield f"{value:.2f}"
        if value in _NUMBERS:
            yield _NUMBERS[int(value)]
    elif isinstance(value, str):
        yield value.replace("_", " ")
        yield value.replace("-", " ")


_NUMBERS = dict(enumerate("zero one two three four five six seven eight nine ten eleven twelve".split()))


def of_snips(data: Path, rng: random.Random) -> Iterator[Example]:
    """Yield human utterances; an intent is a tool, and its slots are parameters with varying names."""
    asked = list(rows(data / "snips_slots" / "train.jsonl"))
    slots: dict[str, set[str]] = {}
    for row in asked:
        slots.setdefault(row["intent"], set()).update(slot["name"] for slot in row["slots"])
    for row in asked:
        said = SNIPS[row["intent"]]
        given = {slot["name"]: slot["value"] for slot in row["slots"]}
        tool, spans, taken = {}, {}, set[str]()
        for slot in sorted(slots[row["intent"]]):
            names, about = SLOTS[slot]
            name = rng.choice(names)
            if name in tool or (slot not in given and rng.random() < 0.5):
                continue
            tool[name] = {"type": "string", **({"description": about} if rng.random() < 0.8 else {})}
            spans[name] = _once(row["query"], given[slot], taken) if slot in given else None
        required = tuple(name for name in tool if rng.random() < 0.35)
        request = row["query"] if rng.random() < 0.7 else row["query"].lower()
        kept = Tool(rng.choice(said["names"]), rng.choice(said["descriptions"]), "", tool, required).varied(rng)
        yield Example("snips", request, kept, 1.0, spans)
        if rng.random() < 0.55:
            name, about = rng.choice(said["beside"]).split(": ")
            yield Example("snips", request, Tool(name, about, "", tool, required).varied(rng), 0.0)
        if rng.random() < 0.25:
            other = rng.choice([SNIPS[one] for one in SNIPS if one != row["intent"]])
            yield Example("snips", request, Tool(rng.choice(other["names"]), rng.choice(other["descriptions"])), 0.0)


def _once(request: str, value: str, taken: set[str]) -> Span:
    """Return the position of a value, or its second position if another parameter has the same value."""
    at = request.find(value)
    if value in taken and request.find(value, at + 1) >= 0:
        at = request.find(value, at + 1)
    taken.add(value)
    return (at, at + len(value)) if at >= 0 else None


def of_own(rng: random.Random) -> Iterator[Example]:
    """Yield our own requests, each with the tool that fits and with some tools that do not."""
    for one in catalogues():
        tools = {name: Tool.of_spec(spec) for name, spec in one.tools.items()}
        for asked in one.requests:
            if asked.tool:
                tool = tools[asked.tool].varied(rng)
                yield Example("own", asked.text, tool, 1.0, spans_of(asked.text, asked.arguments, tool))
            others = [name for name in tools if name != asked.tool]
            for name in rng.sample(others, min(len(others), 3)):
                yield Example("own", asked.text, tools[name].varied(rng), 0.0)


def of_awareness(data: Path, tools: Mapping[str, Tool], rng: random.Random) -> Iterator[Example]:
    """Yield questions that need no tool, each with tools."""
    names = sorted(tools)
    for row in rows(data / "metatool_toole" / "awareness.jsonl"):
        if row["needs_tool"] and row["tool"] in tools:
            yield Example("awareness", row["query"], tools[row["tool"]], 1.0)
        elif not row["needs_tool"]:
            yield Example("awareness", row["query"], tools[rng.choice(names)], 0.0)
