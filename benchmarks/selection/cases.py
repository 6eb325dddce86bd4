"""Read labelled requests, each with its tools: from a file, or from the public sets."""

import json
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from benchmarks.ranking.data import tool_spec
from benchmarks.train.data import held_out, rows
from packetgate.state.errors import InputError
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import ToolRouting
from packetgate.state.sections import Content, Context, PaletteEntry
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.spec.tool_spec import ToolSpec

T = TypeVar("T")

SEED = 1
BFCL = ("simple_python", "multiple", "live_simple", "live_multiple", "irrelevance", "live_irrelevance")
"""The files of BFCL in which one call, or no call, is right."""


class Offered(BaseModel):
    """A tool of a case; `input_schema` and `parameters` mean the same."""

    model_config = ConfigDict(frozen=True)

    name: str
    description: str | None = ""
    server: str | None = ""
    input_schema: dict[str, Any] | None = None
    parameters: dict[str, Any] | None = None

    @property
    def spec(self) -> ToolSpec:
        """The tool as Packetgate represents it."""
        schema = as_json_schema(self.input_schema or self.parameters or {})
        return tool_spec(self.name, self.description or "", schema, server=self.server or "", rated=True)


class Expected(BaseModel):
    """A right call. Without arguments, only the tool must be right."""

    model_config = ConfigDict(frozen=True)

    name: str
    arguments: dict[str, list[JsonValue]] | None = None
    """The accepted values by parameter; "" means that the argument may be missing."""


class Case(BaseModel):
    """A request, its tools, and the right calls, or none."""

    model_config = ConfigDict(frozen=True)

    id: str
    query: str
    tools: tuple[Offered, ...]
    expected: tuple[Expected, ...] = ()
    asks: bool = False
    """Whether the request lacks a value that the tool needs, so that the right outcome is a question."""


def read_cases(path: Path) -> list[Case]:
    """Return the cases of a JSON Lines file.

    Raises:
        InputError: the file cannot be read, or a line is not a case.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as a UTF-8 text file: {error}") from error
    cases = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                cases.append(Case.model_validate_json(line))
            except ValidationError as error:
                raise InputError(f"{path}:{number}: not a case: {str(error).splitlines()[0]}") from error
    return cases


def public_sets(data: Path) -> dict[str, Callable[[], list[Case]]]:
    """Return the readers of the public sets in the data folder, by name."""
    bfcl = {f"bfcl {name}": partial(_bfcl, data / "bfcl_v4" / f"{name}.jsonl") for name in BFCL}
    return {
        **bfcl,
        "sealtools": partial(_sealtools, data / "sealtools", lambda tool: True),
        "sealtools, tools held out": partial(_sealtools, data / "sealtools", partial(held_out, "sealtools")),
        "when2call": partial(_when2call, data / "when2call" / "queries.jsonl"),
    }


def packet_of(request: str, catalogue: Catalogue) -> CognitionPacket:
    """Return the packet of a request before selection, with all tools in full on the palette."""
    palette = tuple(
        PaletteEntry(tool_name=name, detail="full", reason="ranked", risk=spec.risk) for name, spec in catalogue.items()
    )
    return CognitionPacket(
        content=Content(original_prompt=request), context=Context(palette=palette), tool_routing=ToolRouting()
    )


def drawn(cases: list[T], most: int) -> list[T]:
    """Return the first cases in random order, so that a larger sample contains a smaller one."""
    random.Random(SEED).shuffle(cases)
    return cases[:most]


def as_json_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema with the types of JSON Schema instead of BFCL's dict, float, tuple and any."""
    found: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "type" and isinstance(value, str):
            if value.lower() != "any":
                found[key] = _TYPES.get(value.lower(), value.lower())
        elif key == "properties" and isinstance(value, dict):
            found[key] = {name: as_json_schema(part) for name, part in value.items() if isinstance(part, dict)}
        elif key == "items" and isinstance(value, dict):
            found[key] = as_json_schema(value)
        else:
            found[key] = value
    return found


_TYPES = {"dict": "object", "hashmap": "object", "float": "number", "double": "number", "tuple": "array",
          "list": "array", "bool": "boolean", "int": "integer", "str": "string", "long": "integer"}  # fmt: skip


def _bfcl(path: Path) -> list[Case]:
    """Return the cases of a file of BFCL: the user messages, the functions, and the answers from another file."""
    kept = path.parent / "possible_answer" / path.name
    answers = {row["id"]: row["ground_truth"] for row in rows(kept)} if kept.exists() else {}
    cases = []
    for row in rows(path):
        said = [message["content"] for turn in row["question"] for message in turn if message["role"] == "user"]
        right = [(name, values) for call in answers.get(row["id"], []) for name, values in call.items()]
        expected = [{"name": name, "arguments": values} for name, values in right]
        cases.append(_case(id=row["id"], query="\n".join(said), tools=row["function"], expected=expected))
    return cases


def _when2call(path: Path) -> list[Case]:
    """Return the cases of When2Call: call, ask for a missing argument, or say that no tool fits."""
    cases = []
    for row in rows(path):
        name = json.loads(row["target_tool"])["name"] if row["target_tool"] else ""
        can = bool(name) and row["label"] != "cannot_answer"
        asks = row["label"] == "request_for_info"
        expected = [{"name": name}] if can else []
        cases.append(_case(id=row["id"], query=row["query"], tools=row["tools"], expected=expected, asks=asks))
    return cases


def _sealtools(folder: Path, counts: Callable[[str], bool]) -> list[Case]:
    """Return the cases of Seal-Tools with one call of a counted tool; numbers may be digits."""
    tools = {row["id"]: row for row in rows(folder / "tools.jsonl")}
    cases = []
    for row in rows(folder / "test_in_domain.jsonl"):
        if len(row["calls"]) != 1 or not counts(row["calls"][0]["tool"]):
            continue
        (call,) = row["calls"]
        arguments = {name: [*_spelt(value)] for name, value in call["arguments"].items()}
        offered = [tools[name] for name in row["candidates"]]
        expected = [{"name": call["tool"], "arguments": arguments}]
        cases.append(_case(id=row["id"], query=row["query"], tools=offered, expected=expected))
    return cases


def _spelt(value: Any) -> Iterator[Any]:
    """Yield a labelled value and, for a number, its other type: some labels are strings where schemas have numbers."""
    yield value
    if isinstance(value, int | float):
        yield str(value)
    elif isinstance(value, str):
        with suppress(ValueError):
            yield float(value)


def _case(**values: Any) -> Case:
    return Case.model_validate(values)
