"""Arguments that a tool needs and nobody has to give, since they say again which folder its server was started on."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packetgate.tools.text.words import words_of

_ROOTS = frozenset("repo repository workspace project root working cwd".split())
_PLACES = frozenset("path dir directory folder root cwd".split())
_EVERYWHERE = frozenset("search find glob grep tree".split())


@dataclass(frozen=True)
class Ground:
    """The folder that a server works on."""

    folder: str
    told: bool
    """Whether its command names it; otherwise it is only where it was started."""


def ground_of(entry: Mapping[str, Any]) -> Ground | None:
    """Return the one folder that a server's command names, or where it starts; None where it names several, or is not
    started here.
    """
    args = entry.get("args", [])
    if "command" not in entry or not isinstance(args, list):
        return None
    start = Path(str(entry.get("cwd") or ".")).absolute()
    named = {folder for arg in args if (folder := _folder(str(arg), start))}
    if len(named) > 1:
        return None
    return Ground(named.pop(), told=True) if named else Ground(str(start), told=False)


def _folder(arg: str, start: Path) -> str | None:
    """Return the folder that an argument is, or the value of an option such as `--root=.`; a bare word is none."""
    said = arg.partition("=")[2] if arg.startswith("-") else arg
    if not said or not ("/" in said or "\\" in said or said in {".", ".."}):
        return None
    try:
        folder = (start / Path(said).expanduser()).resolve()
        return str(folder) if folder.is_dir() else None
    except (OSError, RuntimeError, ValueError):
        return None


def standing(name: str, schema: Mapping[str, Any], ground: Ground | None, *, reads: bool) -> dict[str, str]:
    """Return the required arguments of a tool that the folder answers, by name.

    A repository's or a workspace's path is that folder; so is the path of what searches in folders, where the command
    names it and nobody says another. Servers may publish any nonsense.
    """
    properties, required = schema.get("properties"), schema.get("required")
    if ground is None or not isinstance(properties, dict) or not isinstance(required, list):
        return {}
    texts = [
        one
        for one in required
        if isinstance(one, str) and isinstance(properties.get(one), dict) and properties[one].get("type") == "string"
    ]
    searches = reads and ground.told and bool(_EVERYWHERE & {*words_of(name)})
    return {one: ground.folder for one in texts if _is_root(one) or (searches and {*words_of(one)} <= _PLACES)}


def without_standing(schema: dict[str, Any], given: Collection[str], ground: Ground | None) -> dict[str, Any]:
    """Return a schema in which nobody has to give these arguments. A root that the command names is not offered."""
    if not given or ground is None:
        return schema
    hidden = {name for name in given if ground.told and _is_root(name)}
    shown = {name: one for name, one in schema["properties"].items() if name not in hidden}
    return {**schema, "properties": shown, "required": [one for one in schema["required"] if one not in given]}


def without_repeated(params: Mapping[str, Any], given: Mapping[str, str], offered: Collection[str]) -> dict[str, Any]:
    """Return the arguments of a call without those that are not `offered` and name the same folder as the one `given`.

    Blocking: links are followed.
    """
    return {
        name: value
        for name, value in params.items()
        if name in offered or name not in given or not _is_same_folder(value, given[name])
    }


def _is_same_folder(value: Any, folder: str) -> bool:
    try:
        return isinstance(value, str) and Path(value).expanduser().resolve() == Path(folder).resolve()
    except (OSError, RuntimeError, ValueError):
        return False


def _is_root(name: str) -> bool:
    words = {*words_of(name)}
    return bool(words & _ROOTS and words & _PLACES)
