"""Read the scorer's training examples: a request, a tool, and the value of each parameter."""

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.ranking.data import tool_spec
from benchmarks.train.data import held_out, rows
from benchmarks.train.judging import examples as judging
from benchmarks.train.judging.synthesis import synthesised
from benchmarks.train.own import catalogues
from packetgate.reflex.values.parameters import Parameter, parameters_of
from packetgate.tools.spec.tool_spec import ToolSpec

OWN = Path(__file__).with_name("own.jsonl")
_REFERENCE = "API_call"
"""Matches Seal-Tools' notation for an argument that is another call's result."""


@dataclass(frozen=True)
class Example:
    """One request for one tool."""

    source: str
    request: str
    tool: ToolSpec
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Values by parameter. Other parameters get no value."""
    spans: Mapping[str, judging.Span] | None = None
    """The words that fill each parameter, if the values are unknown."""
    weight: float = 1.0


def own() -> Iterator[Example]:
    """Yield the examples of our own requests."""
    for line in OWN.read_text("utf-8").splitlines():
        row = json.loads(line)
        tool = tool_spec(row["name"], row["about"], _schema(row["parameters"]))
        for request, arguments in row["requests"]:
            yield Example("own", request, tool, arguments, weight=2.0)
    for catalogue in catalogues():
        for asked in catalogue.requests:
            if asked.tool:
                yield Example("own", asked.text, catalogue.tools[asked.tool], asked.arguments, weight=3.0)


def _schema(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of parameters in short notation; `integer! Lines to show` is a required parameter."""
    properties: dict[str, Any] = {}
    required = []
    for name, said in parameters.items():
        if isinstance(said, list):
            properties[name] = {"type": "string", "enum": said}
        elif isinstance(said, dict):
            properties[name] = said
        else:
            kind, _, about = said.partition(" ")
            if kind.endswith("!"):
                required.append(name)
            outer, _, inner = kind.removesuffix("!").partition("<")
            outer = "number" if outer == "float" else outer
            properties[name] = {"type": outer, "description": about}
            if inner:
                properties[name]["items"] = {"type": inner.rstrip(">")}
    return {"type": "object", "properties": properties, "required": required}


def sealtools(data: Path, *, held: bool = False) -> Iterator[Example]:
    """Yield each call in Seal-Tools' training requests, to the tools for training or to the held-out tools."""
    tools = {row["id"]: row for row in rows(data / "sealtools" / "tools.jsonl")}
    for row in rows(data / "sealtools" / "train.jsonl"):
        for call in row["calls"]:
            if held_out("sealtools", call["tool"]) is held:
                tool = tools[call["tool"]]
                spec = tool_spec(tool["name"], tool["description"], tool["input_schema"])
                given = {name: value for name, value in call["arguments"].items() if _REFERENCE not in str(value)}
                share = 1.0 if len(row["calls"]) == 1 else 0.4
                yield Example("sealtools", row["query"], spec, given, weight=share)


def pointed(data: Path, rng: random.Random, *, utterances: int, made: int) -> Iterator[Example]:
    """Yield examples without values: people's utterances, and synthetic requests for real schemas."""
    said = [one for one in judging.of_snips(data, rng) if one.fits == 1]
    for one in rng.sample(said, min(utterances, len(said))):
        yield _by_words(one, 0.25)
    tools = [judging.Tool.of(row) for row in rows(data / "toucan_mcp_catalog" / "tools.jsonl")]
    plain = [tool for tool in tools if 0 < len(tool.parameters) <= 10 and all(map(_has_type, tool.parameters.values()))]
    for one in synthesised(plain, made, rng):
        if one.fits == 1:
            yield _by_words(one, 0.4)


def _has_type(schema: Mapping[str, Any]) -> bool:
    return isinstance(schema.get("type", "string"), str)


def _by_words(one: judging.Example, weight: float) -> Example:
    schema = {"type": "object", "properties": dict(one.tool.parameters), "required": [*one.tool.required]}
    return Example(
        one.source, one.request, tool_spec(one.tool.upstream_name, one.tool.full, schema), {}, one.spans, weight
    )


def with_strangers(example: Example, others: list[Parameter], rng: random.Random) -> Example:
    """Return an example with additional parameters from another tool, which the request does not fill."""
    schema = example.tool.input_schema
    properties, required = dict(schema.get("properties", {})), [*schema.get("required", [])]
    for other in rng.sample(others, min(2, len(others))):
        if other.name not in properties and not {*other.words} & {
            w for p in parameters_of(example.tool) for w in p.words
        }:
            properties[other.name] = other.schema
            if rng.random() < 0.4:
                required.append(other.name)
    names = [*properties]
    if rng.random() < 0.3:
        rng.shuffle(names)
    mixed = {**schema, "properties": {name: properties[name] for name in names}, "required": required}
    return replace(example, tool=tool_spec(example.tool.name, example.tool.full, mixed))


def capitalised(example: Example) -> Example:
    """Return an example whose request begins with a capital letter, like a sentence."""
    return replace(example, request=example.request[:1].upper() + example.request[1:])


def undescribed(example: Example) -> Example:
    """Return an example whose tool has only names and types, like tools of many servers."""
    schema = example.tool.input_schema
    properties = {
        name: {key: value for key, value in one.items() if key != "description"} if isinstance(one, dict) else one
        for name, one in schema.get("properties", {}).items()
    }
    return replace(example, tool=tool_spec(example.tool.name, "", {**schema, "properties": properties}))
