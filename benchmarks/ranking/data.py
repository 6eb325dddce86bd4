"""Read tools and labelled requests from JSON Lines files."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packetgate.state.errors import InputError
from packetgate.state.routing import Risk
from packetgate.tools.risk.parameter_kinds import Definition
from packetgate.tools.risk.tool import judge_tool
from packetgate.tools.spec.descriptions import brief_of
from packetgate.tools.spec.tool_spec import ToolSpec


@dataclass(frozen=True)
class Row:
    """One JSON object of a file."""

    where: str
    """File and line."""
    values: Mapping[str, Any]

    def get(self, key: str, kind: type, default: Any = None) -> Any:
        """Return a value, or `default` if it is missing or null.

        Raises:
            InputError: the value has another type.
        """
        value = self.values.get(key)
        if value is None:
            return default
        if not isinstance(value, kind):
            raise InputError(f"{self.where}: {key!r} is a {type(value).__name__}, not a {kind.__name__}")
        return value


@dataclass(frozen=True)
class Query:
    """A request and the tools that it needs."""

    text: str
    wanted: tuple[frozenset[str], ...]
    """The equivalent ids for each needed tool."""


def tool_spec(
    name: str,
    description: str,
    schema: dict[str, Any],
    *,
    key: str = "",
    server: str = "",
    server_description: str = "",
    rated: bool = False,
) -> ToolSpec:
    """Return a tool as Packetgate represents it; `rated` rates its risk, otherwise it is a read."""
    full = description.strip() or name
    risk = judge_tool(Definition(name, full, schema)).apparent_risk if rated else Risk.READ
    return ToolSpec(
        name=key or name, server=server, upstream_name=name, full=full, brief=brief_of(full), input_schema=schema,
        risk=risk, server_description=server_description,
    )  # fmt: skip


def read_tools(paths: Iterable[Path]) -> dict[str, ToolSpec]:
    """Return the tools by id, and for a shared id the first tool; pool BFCL's `function` lists.

    Raises:
        InputError: a file cannot be read, or a row is not a tool.
    """
    tools: dict[str, ToolSpec] = {}
    for row in _rows(paths):
        functions = row.get("function", list)
        for part in [row] if functions is None else [_row(row.where, function) for function in functions]:
            spec = _tool(part)
            tools.setdefault(spec.name, spec)
    if not tools:
        raise InputError(f"{', '.join(map(str, paths))}: no tools")
    return tools


def read_queries(paths: Iterable[Path], tools: Mapping[str, ToolSpec]) -> list[Query]:
    """Return the requests that need a tool. A label that is not an id means every tool with that name.

    Raises:
        InputError: a file cannot be read, a row is not a request, or no request needs a tool of `tools`.
    """
    ids_by_name: dict[str, list[str]] = {}
    for spec in tools.values():
        ids_by_name.setdefault(spec.upstream_name, []).append(spec.name)
    queries = []
    for path in paths:
        answers_path = path.parent / "possible_answer" / path.name
        answers = {str(row.values.get("id")): row for row in _rows([answers_path])} if answers_path.exists() else {}
        for row in _rows([path]):
            wanted = _wanted(answers.get(str(row.values.get("id")), row))
            if wanted:
                known = [frozenset(i for name in group for i in _ids(name, tools, ids_by_name)) for group in wanted]
                queries.append(Query(_request(row), tuple(known)))
    if not any(any(query.wanted) for query in queries):
        raise InputError(f"{', '.join(map(str, paths))}: no request needs one of the tools")
    return queries


def _rows(paths: Iterable[Path]) -> Iterator[Row]:
    for path in paths:
        try:
            lines = path.read_text(encoding="utf-8-sig").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path}: cannot be read as a UTF-8 text file: {error}") from error
        for number, line in enumerate(lines, 1):
            if line.strip():
                where = f"{path}:{number}"
                try:
                    yield _row(where, json.loads(line))
                except (ValueError, RecursionError) as error:
                    raise InputError(f"{where}: not JSON: {error}") from error


def _row(where: str, value: Any) -> Row:
    if not isinstance(value, dict):
        raise InputError(f"{where}: expected a JSON object, found {str(value)[:40]!r}")
    return Row(where, value)


def _tool(row: Row) -> ToolSpec:
    name = row.get("name", str)
    if not name:
        raise InputError(f"{row.where}: a tool without a 'name'")
    return tool_spec(
        name,
        row.get("description", str, ""),
        row.get("input_schema", dict) or row.get("parameters", dict, {}),
        key=row.get("id", str) or name,
        server=row.get("server", str, ""),
        server_description=row.get("server_description", str, ""),
    )


def _request(row: Row) -> str:
    """Return the user's words: `query`, or the user's messages of `question`."""
    query: str | None = row.get("query", str)
    if query is not None:
        return query
    messages = [
        message for turn in row.get("question", list, []) if isinstance(turn, list) for message in turn
        if isinstance(message, dict) and message.get("role") == "user" and isinstance(message.get("content"), str)
    ]  # fmt: skip
    if not messages:
        raise InputError(f"{row.where}: a request without 'query' or a user's message in 'question'")
    return "\n".join(message["content"] for message in messages)


def _wanted(row: Row) -> list[Sequence[str]]:
    """Return the equivalent names for each needed tool; empty if a row needs none."""
    groups = row.get("gold_any", list) or [[name] for name in row.get("gold", list, [])]
    if not groups:
        calls = [_row(row.where, call) for call in row.get("ground_truth", list, [])]
        called = [row.get("tool", str), *(name for call in calls for name in call.values)]
        groups = [[name] for name in dict.fromkeys(called) if name]
    if not all(isinstance(group, list) and group and all(isinstance(name, str) for name in group) for group in groups):
        raise InputError(f"{row.where}: the tools needed are not names: {str(groups)[:80]}")
    return groups


def _ids(name: str, tools: Mapping[str, ToolSpec], ids_by_name: Mapping[str, Sequence[str]]) -> Sequence[str]:
    return [name] if name in tools else ids_by_name.get(name, ())
