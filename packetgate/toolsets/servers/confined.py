"""Confine server processes of `mcp.json` by their entries."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from packetgate.state.errors import ServerError
from packetgate.tools.risk.registry import LaunchedPackage, Registry
from packetgate.tools.spec.tool_spec import digest_of
from packetgate.toolsets.builtin.confinement import Confinement
from packetgate.toolsets.builtin.sandbox import SandboxSettings, bubblewrap_works
from packetgate.toolsets.servers import sandbox_port
from packetgate.toolsets.servers.config import McpConfig, ServerConfig
from packetgate.toolsets.servers.launch import (
    DATABASE_SUFFIXES,
    NotRegisteredError,
    ProvedLaunch,
    is_within,
    prove_launch,
)

SWITCH_OFF = '"sandbox": "off" in its entry switches that off'
NO_SANDBOX = (
    "NO SANDBOX works on this machine: servers, and programs of ai.execute, can do everything that you can; install "
    'bubblewrap, or set sandbox = "off" in packetgate.toml to accept that'
)
NOT_SANDBOXED = "not sandboxed, so it can use what you can"
SANDBOX_HINT = (
    'the server runs in the sandbox: "sandbox": ["FOLDER"] in its entry lets it use another folder, "off" all that you '
    "can use"
)
HOSTS_HINT = (
    'the server can connect only to the "hosts" of its entry, and only through the proxy of HTTPS_PROXY; its log names '
    "the refused hosts"
)
SANDBOX_ERRORS = re.compile(
    r"read-only file system|no such file|command not found|permission denied|not permitted|resource busy|unreachable"
    r"|name resolution|fetch failed|\b(?:EROFS|ENOENT|EACCES|EPERM|EBUSY|ENETUNREACH|EAI_AGAIN|ENOTFOUND)\b",
    re.IGNORECASE,
)
"""Errors that the sandbox may cause."""
_PROGRAM_SUFFIXES = frozenset(".py .pyz .js .mjs .cjs .ts .mts .sh .rb .php .jar .exe .dll .go".split())
_PROJECT_FILES = "package.json pyproject.toml setup.py requirements.txt go.mod Cargo.toml Gemfile composer.json".split()
_INDEX_SETTINGS = ".npmrc .bunfig.toml .config/pnpm/rc .config/uv/uv.toml .config/pip/pip.conf .pip/pip.conf".split()
_KEY = re.compile(r"(?i)_auth|passw|token|secret|username|://[^/\s]*@")
_MAX_PATH = 4_096
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://+(?=/)")


class ServerStart(NamedTuple):
    """Command, folder and confinement of a server's process."""

    command: list[str]
    folder: str | None
    environment: dict[str, str]
    confinement: Confinement | None
    """The limits of the process; None: those of the user."""
    package: LaunchedPackage | None
    """The package of the registry that is proved to start."""
    rights: str
    """One line for users: whether the server is registered, and what it may use."""


def server_start(
    config: ServerConfig, entry: Mapping[str, Any], settings: SandboxSettings, registry: Registry, homes: Path
) -> ServerStart:
    """Return how the server of a resolved entry starts. Blocking.

    Raises:
        ServerError: as in `is_confined`.
    """
    try:
        launch = prove_launch(entry, registry, config.folder, homes / ".empty")
        confinement = server_confinement(config.name, entry, settings, homes, launch)
    except NotRegisteredError as error:
        confinement = server_confinement(config.name, entry, settings, homes)
        rights = f"not registered: {error}; {_described(confinement)}"
        command = [str(entry["command"]), *map(str, entry.get("args", ()))]
        return ServerStart(command, entry.get("cwd"), entry.get("env", {}), confinement, None, rights)
    rights = f"registered: {launch.package.package}; {_described(confinement)}"
    environment = launch.environment | launch.variables
    return ServerStart(launch.command, str(launch.folder), environment, confinement, launch.package, rights)


def is_confined(entry: Mapping[str, Any], settings: SandboxSettings, *, is_registered: bool) -> bool:
    """Return whether a server process runs in the sandbox. Blocking.

    Raises:
        ServerError: no sandbox works on this machine, and the entry or the settings require one, or the server is
            neither known nor confirmed.
    """
    wanted = entry.get("sandbox")
    if wanted == "off" or (wanted is None and settings.mode == "off"):
        return False
    if bubblewrap_works():
        return True
    if wanted is not None or settings.mode == "require":
        raise ServerError(
            f"no sandbox works on this machine, so the server does not start: install bubblewrap; {SWITCH_OFF}"
        )
    if not is_registered and not _confirmation(entry, settings.data).exists():
        raise ServerError(
            "no sandbox works on this machine, and the server is unknown, so it does not start: install bubblewrap, or "
            f"confirm the server once in a terminal, with `packetgate tools`; {SWITCH_OFF}"
        )
    return False


def sandbox_problem(settings: SandboxSettings) -> str:
    """Return a warning if the settings require a sandbox and none works; empty otherwise. Blocking."""
    return NO_SANDBOX if settings.mode == "auto" and not bubblewrap_works() else ""


def unconfirmed_servers(config: McpConfig, settings: SandboxSettings, registry: Registry) -> dict[str, dict[str, Any]]:
    """Return the entries of unknown servers that wait for a confirmation, because no sandbox works. Blocking."""
    found = dict[str, dict[str, Any]]()
    empty = (settings.data or Path(os.devnull)) / "servers" / ".empty"
    for server in config.servers if sandbox_problem(settings) else ():
        with suppress(ServerError):  # reported when the server starts
            entry = server.resolved_entry()
            if "command" in entry and entry.get("sandbox") is None and not _confirmation(entry, settings.data).exists():
                try:
                    prove_launch(entry, registry, server.folder, empty)
                except NotRegisteredError:
                    found[server.name] = entry
    return found


def confirm_server(entry: Mapping[str, Any], data: Path) -> None:
    """Let a server start without a sandbox from now on, until its command or folder changes. Blocking."""
    path = _confirmation(entry, data)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.touch(0o600)


def _confirmation(entry: Mapping[str, Any], data: Path | None) -> Path:
    command = [str(entry.get("command")), *map(str, entry.get("args", ()))]
    folder = str(Path(entry.get("cwd") or ".").expanduser().absolute())
    return (data or Path(os.devnull)) / "confirmed" / digest_of([command, folder])


def server_confinement(
    name: str,
    entry: Mapping[str, Any],
    settings: SandboxSettings,
    homes: Path,
    launch: ProvedLaunch | None = None,
) -> Confinement | None:
    """Return the access of a server's process, or None if it is not confined. Blocking.

    The server sees a home folder of its own, below `homes`, which is kept for the same command. Unless its entry says
    `read-only`, it may change its working folder, and the folders and files that its entry names, but no programs.

    Raises:
        ServerError: as in `is_confined`.
        NotRegisteredError: others may change what `launch` starts, in a folder that the entry names.
    """
    if not is_confined(entry, settings, is_registered=launch is not None):
        return None
    wanted = entry.get("sandbox")
    start = Path(entry.get("cwd") or ".").expanduser().absolute()
    user_home = Path.home()
    command = launch.command if launch else [str(entry["command"]), *map(str, entry.get("args", ()))]
    environment = launch.variables if launch else entry.get("env", {})
    reads, writes = [*_expanded(settings.reads, start)], [*_expanded(settings.writes, start)]
    if isinstance(wanted, list):
        writes += _expanded(wanted, start)
    for path, is_program in _named_paths(command[1:] if launch else command, environment, start):
        (reads if is_program else writes).append(path)
    if not user_home.is_relative_to(start):
        writes.append(start)
    private = [one.resolve() for one in (homes, settings.data) if one]
    if is_within(start, private):
        raise ServerError('its folder is in Packetgate\'s data folder: give its entry another "cwd"')
    reads, writes = ([path for path in paths if not is_within(path, private)] for paths in (reads, writes))
    if wanted == "read-only":
        reads, writes = [*reads, *writes], []
    home = homes / f"{'registered.' if launch else ''}{name}-{digest_of(command)[:12]}"
    if launch:
        opened = [path.resolve() for path in (*reads, *writes)]
        if is_within(user_home, opened) or is_within(launch.folder, opened):
            raise NotRegisteredError("its entry opens your home folder, or a folder above Packetgate's data folder")
        reads += [launch.folder, *_index_settings(user_home)]
    homes.mkdir(mode=0o700, parents=True, exist_ok=True)
    home.mkdir(mode=0o700, exist_ok=True)
    hosts = entry.get("hosts")
    has_network = hosts is None or "*" in hosts
    return Confinement(
        launch.folder if launch else start,
        (*reads, Path(sandbox_port.__file__)),
        tuple(writes),
        network=has_network,
        hosts=() if hosts is None or has_network else tuple(hosts),
        home=home,
        data=settings.data,
        settings_files=settings.settings_files,
    )


def _described(confinement: Confinement | None) -> str:
    if confinement is None:
        return NOT_SANDBOXED
    folders = [*dict.fromkeys(map(str, confinement.writes))]
    more = f" and {len(folders) - 3} more" if len(folders) > 3 else ""
    hosts = "any host" if confinement.network else ", ".join(confinement.hosts) or "no host"
    return f"sandboxed: changes {', '.join(folders[:3]) or 'only its own home folder'}{more}; reaches {hosts}"


def _index_settings(home: Path) -> Iterator[Path]:
    """Yield the user's own settings of package launchers that contain no keys."""
    for name in _INDEX_SETTINGS:
        with suppress(OSError, UnicodeDecodeError):
            if not _KEY.search((home / name).read_text("utf-8")):
                yield home / name


def _expanded(paths: Any, start: Path) -> list[Path]:
    return [start / Path(path).expanduser() for path in paths if isinstance(path, str)]


def _named_paths(command: list[str], environment: Mapping[str, Any], start: Path) -> Iterator[tuple[Path, bool]]:
    """Yield the paths that a command and its variables name, and whether a path is that of a program."""
    texts = [
        *(text.partition("=")[2] if text.startswith("-") else text for text in command),
        *(
            part
            for value in environment.values()
            for part in str(value).split(os.pathsep if "/" in str(value) else "\n")
        ),
    ]
    for text in texts:
        if "\n" in text or len(text) > _MAX_PATH:
            continue
        with suppress(OSError, RuntimeError, ValueError):
            written = Path(_URL.sub("", text.removeprefix("file://"))).expanduser()
            path = start / written
            is_path = "/" in text or text in {".", ".."} or written.suffix in _PROGRAM_SUFFIXES | DATABASE_SUFFIXES
            if is_path and path != Path("/") and (found := _usable(path)):
                yield found
                if found[1] and path.is_file() and path.resolve() != path:  # a linked package of a workspace
                    yield _project(path.resolve()), True


def _usable(path: Path) -> tuple[Path, bool] | None:
    if path.is_dir():
        is_environment = (path / "pyvenv.cfg").exists()
        return path, is_environment
    if path.is_file() and (path.suffix in _PROGRAM_SUFFIXES or os.access(path, os.X_OK)):
        return _project(path), True
    # a database has further files next to it, and a server may replace its file by a new one
    needs_folder = path.suffix in DATABASE_SUFFIXES or not path.exists() or _is_alone(path)
    if needs_folder and path.suffix and path.parent.is_dir() and not Path.home().is_relative_to(path.parent):
        return path.parent, False
    return (path, False) if path.exists() else None


def _is_alone(file: Path) -> bool:
    """Return whether a folder contains only this file and files with its name and another suffix."""
    try:
        return all(other.name.startswith(f"{file.stem}.") for other in file.parent.iterdir())
    except OSError:  # the folder cannot be listed
        return False


def _project(program: Path) -> Path:
    """Return the folder of the program's project, or the program's folder; never the home folder.

    For a package's program in `node_modules`, return `node_modules`, which contains the package's dependencies.
    """
    program, home = Path(os.path.normpath(program)), Path.home()
    if modules := [folder for folder in program.parents if folder.name == "node_modules"]:
        return modules[-1]
    folders = [folder for folder in program.parents if not home.is_relative_to(folder) and len(folder.parts) > 2]
    marked = (folder for folder in folders[:4] if any((folder / name).exists() for name in _PROJECT_FILES))
    return next(marked, folders[0] if folders else program)
