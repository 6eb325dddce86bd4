"""The registry of known servers: what each tool of a published package does, labelled by reading its source.

An entry holds only for a server that a package launcher starts from the public registry of packages, and only for a
tool whose name and input schema have not changed.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version
from pydantic import BaseModel, ConfigDict

from packetgate.state.routing import Risk
from packetgate.tools.spec.tool_spec import digest_of

SHIPPED = Path(__file__).with_name("registry.json")
_PROSE = frozenset({"title", "description", "examples", "$comment"})
_SCHEMAS_BY_NAME = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_VALUES = frozenset({"enum", "const", "default", "required"})

_LAUNCHERS = {
    ("npx",): "npm",
    ("bunx",): "npm",
    ("pnpm", "dlx"): "npm",
    ("uvx",): "pypi",
    ("pipx", "run"): "pypi",
}
_HARMLESS_OPTIONS = frozenset("-y --yes -q --quiet --silent --bun --isolated --offline --refresh".split())
_REDIRECTING_PREFIXES = ("BUN_", "COREPACK_", "DYLD_", "LD_", "NODE_", "NPM_", "PIP_", "PIPX_", "PNPM_", "UV_", "XDG_")
_REDIRECTING_VARIABLES = frozenset(
    "ALL_PROXY APPDATA BASH_ENV HOME HTTPS_PROXY HTTP_PROXY PATH PYTHONHOME PYTHONPATH PYTHONSTARTUP USERPROFILE"
    " VIRTUAL_ENV".split()
)
"""Variables that may change which package runs, or which code runs in it."""
_HARMLESS_VARIABLES = frozenset({"NODE_ENV", "NODE_EXTRA_CA_CERTS"})
_FOLDER_FILES = {
    "npx": (),
    "bunx": ("bunfig.toml", ".env", ".env.local", ".env.development", ".env.production"),
    "pnpm": ("pnpm-workspace.yaml", ".pnpmfile.cjs"),
    "uvx": (),
    "pipx": ("__pypackages__",),
}
"""Files and folders by which a launcher may start something else, in the folder of the server or above."""
_HARMLESS_NPM_SETTINGS = frozenset(
    "audit engine-strict fund legacy-peer-deps loglevel package-lock progress save save-exact save-prefix"
    " update-notifier".split()
)
# a version that begins with a dot or ends like an archive is a local file, to npm
_NPM_SPEC = re.compile(
    r"((?:@[a-z0-9~-][\w.~-]*/)?[a-z0-9~-][\w.~-]*)(?:@(?!\.|.*\.(?i:tgz|tar|tar\.gz)$)([^/\\:\s]+))?"
)
_PYPI_SPEC = re.compile(r"([A-Za-z0-9][\w.-]*)(?:\[[\w.,-]*\])?(?:(==|@)([^/\\:\s]+))?")
_EXACT_VERSION = re.compile(r"\d+(?:\.\d+)+[\w.+-]*")


class ToolLabel(BaseModel):
    """What a tool of a known server does."""

    model_config = ConfigDict(frozen=True)

    digest: str
    """`definition_digest` of the labelled tool."""
    risk: Risk
    """A tool that prints secrets is labelled as a write, so that it needs approval."""
    why: str = ""
    """The place in the source, and what it does."""
    read_without: tuple[str, ...] = ()
    """Parameters of a tool that changes something; a call without any of them only reads."""
    outward: bool | None = None
    untrusted: bool | None = None
    private: bool | None = None
    undo: str | None = None
    """The server's tool that undoes a call, and how it is called in words."""


class KnownServer(BaseModel):
    """A package whose server is labelled, in a range of versions."""

    model_config = ConfigDict(frozen=True)

    package: str
    """Such as `npm:@scope/name` or `pypi:name`."""
    versions: str
    """Version specifiers, such as `>=1.0,<=1.4.2`."""
    server_version: str = ""
    """The version that the labelled server reports of itself, which may differ from its package's version."""
    source: str = ""
    tools: dict[str, ToolLabel]

    def covers(self, launched: "LaunchedPackage", reported_version: str) -> bool:
        """Return whether the entry holds for a launched server.

        A pinned version decides, otherwise the version that the server reports. If the labelled server did not report
        its package's version, the reported version says nothing.
        """
        if launched.package != self.package:
            return False
        if not launched.version and not self._covers(self.server_version):
            return True
        return self._covers(launched.version or reported_version)

    def _covers(self, version: str) -> bool:
        try:
            return SpecifierSet(self.versions).contains(Version(version), prereleases=True)
        except InvalidVersion:
            return False


class LaunchedPackage(NamedTuple):
    """The package that a server's command starts."""

    package: str
    version: str
    """The pinned version; empty if none is pinned."""


class Confirmation(NamedTuple):
    """A label, and the version of the registry that contains it."""

    label: ToolLabel
    registry_version: int


@dataclass(frozen=True)
class Registry:
    """The known servers."""

    version: int = 0
    servers: tuple[KnownServer, ...] = ()

    @property
    def description(self) -> str:
        """The version and size as text for users."""
        tools = sum(len(server.tools) for server in self.servers)
        servers = len({server.package for server in self.servers})
        return f"version {self.version}: {servers} known servers with {tools:,} labelled tools"

    def confirmation(
        self, launched: LaunchedPackage | None, reported_version: str, name: str, schema: Mapping[str, Any]
    ) -> Confirmation | None:
        """Return the label of a tool; None if its server, version or definition is unknown."""
        if launched is None:
            return None
        digest = definition_digest(name, schema)
        labels = (server.tools.get(name) for server in self.servers if server.covers(launched, reported_version))
        return next((Confirmation(label, self.version) for label in labels if label and label.digest == digest), None)


def definition_digest(name: str, schema: Mapping[str, Any]) -> str:
    """Return the digest of a tool's name and input schema, without prose: descriptions may contain dates and names."""
    return digest_of([name, _without_prose(schema)])


@cache
def load_registry() -> Registry:
    """Return the shipped registry. Blocking."""
    document = json.loads(SHIPPED.read_text("utf-8"))
    return Registry(document["version"], tuple(map(KnownServer.model_validate, document["servers"])))


def launched_package(entry: Mapping[str, Any], folder: Path) -> LaunchedPackage | None:
    """Return the package that a server's entry starts from the public registry of packages. Blocking.

    Return None for another command, for options and variables that may redirect the launcher, and if `folder`, in which
    the server starts, or a folder above may do so.
    """
    command = [str(entry.get("command") or ""), *map(str, entry.get("args") or ())]
    if command[0].casefold() in ("cmd", "cmd.exe") and command[1:2] in (["/c"], ["/C"]):
        command = command[2:]
    program, _, suffix = re.split(r"[/\\]", command[0] if command else "")[-1].partition(".")
    words = (program, *command[1:])
    launcher = next((known for known in _LAUNCHERS if words[: len(known)] == known), None)
    is_path = program != command[0].partition(".")[0] if command else False
    if launcher is None or suffix not in ("", "cmd", "exe") or any(map(_redirects, entry.get("env") or ())):
        return None
    if is_path and (not Path(command[0]).is_absolute() or Path(command[0]).is_relative_to(folder.absolute())):
        return None
    arguments = [*words[len(launcher) :]]
    while arguments and arguments[0] in _HARMLESS_OPTIONS:
        del arguments[0]
    is_named = launcher == ("uvx",) and arguments[:1] == ["--from"]
    arguments = arguments[1:] if is_named else arguments
    kind = _LAUNCHERS[launcher]
    match = (_NPM_SPEC if kind == "npm" else _PYPI_SPEC).fullmatch(arguments[0]) if arguments else None
    if match is None:
        return None
    name = match[1] if kind == "npm" else re.sub(r"[-_.]+", "-", match[1]).casefold()
    version = match[match.re.groups] or ""
    if kind == "pypi" and match[2] == "@" and (program != "uvx" or not _is_version(version)):  # a local file or folder
        return None
    if is_named and arguments[1:2] not in ([match[1]], [name]):  # `uvx --from` can start any program of its environment
        return None
    if _folder_redirects(folder, program, arguments[0] if program == "pipx" else name):
        return None
    return LaunchedPackage(f"{kind}:{name}", version if _EXACT_VERSION.fullmatch(version) else "")


def _redirects(variable: str) -> bool:
    name = variable.upper()
    return name in _REDIRECTING_VARIABLES or (
        name.startswith(_REDIRECTING_PREFIXES) and name not in _HARMLESS_VARIABLES
    )


def _folder_redirects(folder: Path, program: str, package: str) -> bool:
    """Return whether a file of the folder, or of a folder above, may change what the launcher starts."""
    folder = folder.absolute()
    if program == "pipx" and (folder / package).exists():  # pipx runs a file of this name
        return True
    for place in (folder, *folder.parents):
        found = [place / name for name in _FOLDER_FILES[program]]
        if program in ("npx", "bunx", "pnpm"):
            programs = place / "node_modules" / ".bin"
            found += [place / "node_modules" / package, programs / package, programs / package.rpartition("/")[2]]
        if any(map(os.path.lexists, found)):
            return True
        if program in ("npx", "bunx", "pnpm") and (
            (place != Path.home() and _npm_settings_redirect(_text_of(place / ".npmrc")))
            or _name_in(_text_of(place / "package.json")) == package
        ):
            return True
    return False


def _npm_settings_redirect(text: str) -> bool:
    lines = (line.strip() for line in re.split(r"[\r\n]", text))
    settings = (line.partition("=")[0].strip() for line in lines if line and not line.startswith(("#", ";")))
    return any(setting not in _HARMLESS_NPM_SETTINGS for setting in settings)


def _name_in(package_file: str) -> str:
    try:
        package = json.loads(package_file.removeprefix("\ufeff") or "{}")
    except (ValueError, RecursionError):
        return ""
    return str(package.get("name")) if isinstance(package, dict) else ""


def _is_version(text: str) -> bool:
    try:
        return text == "latest" or bool(Version(text))
    except InvalidVersion:
        return False


def _text_of(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


def _without_prose(schema: Any) -> Any:
    if isinstance(schema, Mapping):
        return {
            key: {name: _without_prose(part) for name, part in value.items()}
            if key in _SCHEMAS_BY_NAME and isinstance(value, Mapping)
            else value
            if key in _VALUES
            else _without_prose(value)
            for key, value in schema.items()
            if key not in _PROSE
        }
    if isinstance(schema, Sequence) and not isinstance(schema, str):
        return [_without_prose(part) for part in schema]
    return schema
