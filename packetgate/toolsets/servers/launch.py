"""Prove, before a server starts, that its entry starts a package of the registry of known servers."""

import os
import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packetgate.tools.risk.registry import LaunchedPackage, Registry, requested_launch

DATABASE_SUFFIXES = frozenset(".db .db3 .sqlite .sqlite3 .duckdb .kuzu .lance".split())
_INDEX_VARIABLES = (
    "npm_config_registry NPM_CONFIG_REGISTRY PIP_CERT PIP_EXTRA_INDEX_URL PIP_FIND_LINKS PIP_INDEX_URL UV_DEFAULT_INDEX"
    " UV_EXTRA_INDEX_URL UV_FIND_LINKS UV_INDEX UV_INDEX_STRATEGY UV_INDEX_URL UV_NATIVE_TLS UV_SYSTEM_CERTS"
).split()
"""Variables of the user's own environment that say where a launcher finds packages."""
_CREDENTIAL = re.compile(r"[A-Z][A-Z0-9_]*_(?:API_KEY|SECRET_KEY|ACCESS_KEY|TOKEN|SECRET|PASSWORD)")
"""Names of variables that hold a key: a key redirects nothing."""
_MAX_PATH = 4_096


class NotRegisteredError(ValueError):
    """An entry is not proved to start a package of the registry; the message gives the reason."""


@dataclass(frozen=True)
class ProvedLaunch:
    """The start of a registered package, in a way that nothing in the working folder can redirect its launcher."""

    package: LaunchedPackage
    command: list[str]
    variables: dict[str, str]
    """The variables of the entry."""
    environment: dict[str, str]
    """Further variables: `PATH` without folders of the workspace, and the user's own indexes of packages."""
    folder: Path
    """The empty folder in which the launcher starts."""


def prove_launch(entry: Mapping[str, Any], registry: Registry, workspace: Path, folder: Path) -> ProvedLaunch:
    """Return how to start the package of a resolved entry. Blocking.

    Args:
        workspace: its files, the entry's folder and the current folder do not determine the program.
        folder: the empty folder to start in; it is created.

    Raises:
        NotRegisteredError: the entry starts another program, or may do so.
    """
    launch = requested_launch([str(entry.get("command") or ""), *map(str, entry.get("args") or ())])
    servers = registry.known_servers(launch.package) if launch else ()
    if launch is None or not servers:
        raise NotRegisteredError("the registry does not contain the package that it starts")
    start = Path(entry.get("cwd") or ".").absolute()
    variables = {str(name): str(value) for name, value in (entry.get("env") or {}).items()}
    allowed = {name for server in servers for name in server.variables}
    if refused := [name for name in variables if name not in allowed and not _CREDENTIAL.fullmatch(name)]:
        raise NotRegisteredError(f"its entry sets {', '.join(sorted(refused)[:3])}")
    home = Path.home().resolve()
    places = [
        one for one in (Path(place).resolve() for place in (workspace, start, ".")) if not home.is_relative_to(one)
    ]
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    path = os.pathsep.join(one for one in folders if Path(one).is_absolute() and not is_within(one, places))
    program = shutil.which(launch.program, path=path)
    if program is None or is_within(program, places):
        raise NotRegisteredError(f"PATH has no {launch.program} outside the working folder")
    is_path = "/" in launch.launcher or "\\" in launch.launcher
    if is_path and os.path.realpath(start / launch.launcher) != os.path.realpath(program):
        raise NotRegisteredError(f"its launcher is not {program} from PATH")
    folder = folder.resolve()
    if is_within(folder, places):
        raise NotRegisteredError(f"{folder} is in the working folder")
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o500, exist_ok=True)
    if any(folder.iterdir()):
        raise NotRegisteredError(f"{folder} is not empty")
    arguments = [_absolute_argument(argument, start) for argument in launch.arguments]
    inherited = {name: os.environ[name] for name in _INDEX_VARIABLES if name in os.environ}
    return ProvedLaunch(
        launch.package,
        [program, *launch.options, *arguments],
        {name: _absolute_argument(value, start) for name, value in variables.items()},
        {"PATH": path, **inherited},
        folder,
    )


def is_within(path: str | Path, places: Iterable[Path]) -> bool:
    """Return whether the real path is one of these places or below. Blocking."""
    real = Path(path).resolve()
    return any(real.is_relative_to(place) for place in places)


def _absolute_argument(argument: str, start: Path) -> str:
    """Return an argument, such as `.` or `--root=./x`, with an absolute path in place of a relative one.

    Raises:
        NotRegisteredError: a word is also the name of a file or folder.
    """
    option, equals, value = argument.partition("=") if argument.startswith("-") else ("", "", argument)
    path = Path(value)
    if not value or path.is_absolute() or "://" in value or len(value) > _MAX_PATH:
        return argument
    is_marked = value in (".", "..") or value.startswith(("./", "../"))
    if not is_marked and path.suffix not in DATABASE_SUFFIXES:
        if not os.path.lexists(start / path):
            return argument
        if "/" not in value and not path.suffix:
            raise NotRegisteredError(f"{value!r} may be a word or a path: write ./{value} for the path")
    return f"{option}{equals}{start / path}"
