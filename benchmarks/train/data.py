"""Read the data sets by use: training, model choice, or reports only. Splits are by tool and source, never by row.

This module imports only Packetgate, so that every training script can import it.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from benchmarks.ranking.data import Query, read_queries, read_tools, tool_spec
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.words import words_of

Use = Literal["train", "choose", "report", "mix"]
"""Uses of a source. `mix`: fits the ranking's weights, because the encoder was not trained on it."""

HELD_OUT_PERCENT = 20
"""Share of MetaTool's and Seal-Tools' tools that are held out, with every request that needs such a tool."""
OUT_OF_SCOPE = "oos"
"""CLINC150's name for requests without an intent."""


@dataclass(frozen=True)
class Source:
    """A catalogue, and requests with their needed tools."""

    name: str
    tools: Mapping[str, ToolSpec]
    """By id."""
    queries: Sequence[Query] = ()


class Pair(NamedTuple):
    """A request and one needed tool."""

    source: str
    request: str
    tool: ToolSpec


def held_out(folder: str, tool: str) -> bool:
    """Return whether a tool id of MetaTool or Seal-Tools is held out from training."""
    digest = hashlib.sha1(f"{_SALTS[folder]}:{tool}".encode(), usedforsecurity=False).hexdigest()
    return int(digest, 16) % 100 < HELD_OUT_PERCENT


def sources(data: Path, use: Use) -> Iterator[Source]:
    """Yield the sources of one use.

    Raises:
        InputError: a file is missing, or has the wrong format.
    """
    for name, read in _SOURCES[use].items():
        tools, queries = read(data)
        yield Source(name, tools, queries)


def pairs(source: Source) -> Iterator[Pair]:
    """Yield every request with each needed tool, or with the first of equivalent tools."""
    for query in source.queries:
        for group in query.wanted:
            known = sorted(group & source.tools.keys())
            if known:
                yield Pair(source.name, query.text, source.tools[known[0]])


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a file, to read data that `Source` lacks, such as arguments."""
    for line in path.read_text(encoding="utf-8").split("\n"):
        if line.strip():
            yield json.loads(line)


_SALTS = {"sealtools": "tool", "metatool_toole": "held out"}
"""Salts of the splits. This copy of MetaTool was cut by Seal-Tools' salt, which would leave no held-out request."""

_Read = tuple[Mapping[str, ToolSpec], Sequence[Query]]


def _plain(folder: str, *queries: str, tools: str = "tools.jsonl") -> Callable[[Path], _Read]:
    def read(data: Path) -> _Read:
        known = read_tools([data / folder / tools])
        return known, read_queries([data / folder / name for name in queries], known)

    return read


def _without_held_out(folder: str, *queries: str) -> Callable[[Path], _Read]:
    """Return a reader of the tools for training, and of the requests that need only these tools."""

    def read(data: Path) -> _Read:
        tools, found = _plain(folder, *queries)(data)
        kept = {name: spec for name, spec in tools.items() if not held_out(folder, name)}
        return kept, [one for one in found if all(group <= kept.keys() for group in one.wanted)]

    return read


def _only_held_out(folder: str, *queries: str) -> Callable[[Path], _Read]:
    """Return a reader of all tools, and of the requests that need a held-out tool."""

    def read(data: Path) -> _Read:
        tools, found = _plain(folder, *queries)(data)
        return tools, [one for one in found if any(held_out(folder, tool) for group in one.wanted for tool in group)]

    return read


def _pooled(folder: str, *files: str) -> Callable[[Path], _Read]:
    """Return a reader of files whose rows list functions; all functions form one catalogue."""

    def read(data: Path) -> _Read:
        paths = [data / folder / name for name in files]
        tools = read_tools(paths)
        return tools, read_queries(paths, tools)

    return read


def _apibench(data: Path) -> _Read:
    """Read APIBench: models of the same domain and functionality are equivalent."""
    folder = data / "gorilla_apibench"
    queries = [
        Query(row["query"], (frozenset([*row["gold"], *row.get("acceptable", [])]),))
        for row in rows(folder / "train.jsonl")
    ]
    return read_tools([folder / "tools.jsonl"]), queries


def _intents(folder: str) -> Callable[[Path], _Read]:
    """Return a reader of utterances by intent. Each intent is a tool, and its slots are the parameters."""

    def read(data: Path) -> _Read:
        queries, slots = [], dict[str, set[str]]()
        for row in rows(data / folder / "train.jsonl"):
            intent = row["intent"]
            if intent != OUT_OF_SCOPE:
                slots.setdefault(intent, set()).update(slot["name"] for slot in row.get("slots", []))
                queries.append(Query(row["query"], (frozenset([intent]),)))
        return {intent: _intent(intent, sorted(names)) for intent, names in slots.items()}, queries

    return read


def _intent(name: str, slots: Sequence[str]) -> ToolSpec:
    said = " ".join(words_of(name))
    return tool_spec(name, said, {"type": "object", "properties": {slot: {"type": "string"} for slot in slots}})


def _catalogue(folder: str, *files: str) -> Callable[[Path], _Read]:
    """Return a reader of tools without requests."""
    return lambda data: (read_tools([data / folder / name for name in files]), ())


def _toucan(data: Path) -> _Read:
    """Read the tools of MCP servers, each with the description of its server."""
    folder = data / "toucan_mcp_catalog"
    about = {row["id"]: row["description"] or "" for row in rows(folder / "servers.jsonl")}
    tools = read_tools([folder / "tools.jsonl", folder / "tools_without_schema.jsonl"])
    return {
        name: replace(spec, server_description=about.get(name.split("/")[0], "")) for name, spec in tools.items()
    }, ()


_BFCL_LIVE = ("live_simple.jsonl", "live_multiple.jsonl", "live_parallel.jsonl", "live_parallel_multiple.jsonl")
_BFCL = ("simple_python.jsonl", "multiple.jsonl", "parallel.jsonl", "parallel_multiple.jsonl")

_SOURCES: dict[Use, dict[str, Callable[[Path], _Read]]] = {
    "train": {
        "metatool": _without_held_out("metatool_toole", "train.jsonl"),
        "sealtools": _without_held_out("sealtools", "train.jsonl"),
        "apibench": _apibench,
        "clinc150": _intents("clinc150"),
        "snips": _intents("snips_slots"),
        "taskbench": _catalogue("taskbench_shape", "tools.jsonl"),
        "toucan": _toucan,
    },
    "choose": {
        "tooleyes": _plain("tooleyes", "server_train.jsonl", "server_test.jsonl"),
        "stabletoolbench": _plain("stabletoolbench", "train.jsonl", "test.jsonl"),
        "apizoo": _plain("gorilla_apizoo", "train.jsonl", "test.jsonl"),
        "metatool, tools held out": _only_held_out("metatool_toole", "val.jsonl"),
    },
    "mix": {
        "tooleyes": _plain("tooleyes", "server_train.jsonl", "server_test.jsonl"),
        "stabletoolbench": _plain("stabletoolbench", "train.jsonl", "test.jsonl"),
        "apizoo": _plain("gorilla_apizoo", "train.jsonl", "test.jsonl"),
        "metatool": _only_held_out("metatool_toole", "train.jsonl"),
        "sealtools": _only_held_out("sealtools", "train.jsonl"),
    },
    "report": {
        "bfcl live": _pooled("bfcl_v4", *_BFCL_LIVE),
        "bfcl": _pooled("bfcl_v4", *_BFCL),
        "livemcpbench": _plain("livemcpbench", "queries.jsonl"),
        "sealtools test": _plain("sealtools", "test_in_domain.jsonl"),
        "metatool test": _plain("metatool_toole", "test.jsonl"),
        "metatool test, tools held out": _only_held_out("metatool_toole", "test.jsonl"),
    },
}
