"""Arguments that default to the folder that a tool's server works on."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.words import words_of

_ROOTS = frozenset("repo repository workspace project root working cwd".split())
_PLACES = frozenset("path dir directory folder root cwd".split())
_SEARCHES = frozenset("search find glob grep tree".split())


@dataclass(frozen=True)
class ServerFolder:
    """The folder that a server works on."""

    path: str
    is_named: bool
    """Whether the server's command names it; otherwise the server is only started there."""


def server_folder(entry: Mapping[str, Any]) -> ServerFolder | None:
    """Return the folder that a server's command names, or the folder in which the server starts.

    Return None for a remote server, and if the command names several folders.
    """
    args = entry.get("args", [])
    if "command" not in entry or not isinstance(args, list):
        return None
    start = Path(str(entry.get("cwd") or ".")).absolute()
    named = {folder for arg in args if (folder := _named_folder(str(arg), start))}
    if len(named) > 1:
        return None
    return ServerFolder(named.pop(), is_named=True) if named else ServerFolder(str(start), is_named=False)


def _named_folder(arg: str, start: Path) -> str | None:
    """Return the folder that an argument such as `./shop` or `--root=.` names; None for a bare word."""
    value = arg.partition("=")[2] if arg.startswith("-") else arg
    if "/" not in value and "\\" not in value and value not in {".", ".."}:
        return None
    try:
        folder = (start / Path(value).expanduser()).resolve()
        return str(folder) if folder.is_dir() else None
    except (OSError, RuntimeError, ValueError):
        return None


def default_arguments(
    tool: str, schema: Mapping[str, Any], folder: ServerFolder | None, *, reads: bool
) -> dict[str, str]:
    """Return the required arguments of a tool that default to the folder.

    They are the path of a repository or workspace, and the path of a search if the command names the folder.
    """
    properties, required = schema.get("properties"), schema.get("required")
    if folder is None or not isinstance(properties, dict) or not isinstance(required, list):
        return {}
    searches = reads and folder.is_named and bool(_SEARCHES & {*words_of(tool)})
    return {
        name: folder.path
        for name in required
        if isinstance(name, str) and isinstance(properties.get(name), dict) and properties[name].get("type") == "string"
        if _is_root(name) or (searches and {*words_of(name)} <= _PLACES)
    }


def without_default_arguments(
    schema: dict[str, Any], names: Collection[str], folder: ServerFolder | None
) -> dict[str, Any]:
    """Return a schema that does not require these arguments, and hides a root that the server's command names."""
    if not names or folder is None:
        return schema
    hidden = {name for name in names if folder.is_named and _is_root(name)}
    shown = {name: one for name, one in schema["properties"].items() if name not in hidden}
    return {**schema, "properties": shown, "required": [one for one in schema["required"] if one not in names]}


def without_repeated_defaults(params: Mapping[str, Any], spec: ToolSpec) -> dict[str, Any]:
    """Return the arguments without hidden ones that name the default folder again. May block."""
    hidden = {name: path for name, path in spec.default_args.items() if name not in spec.parameters}
    return {
        name: one
        for name, one in params.items()
        if not (name in hidden and _absolute_path(one) == _absolute_path(hidden[name]))
    }


def _absolute_path(path: Any) -> Path | None:
    """Return the absolute path; None for a value that is not a path."""
    try:
        return Path(path).expanduser().resolve()
    except (OSError, RuntimeError, TypeError, ValueError):
        return None


def _is_root(name: str) -> bool:
    words = {*words_of(name)}
    return bool(words & _ROOTS and words & _PLACES)
