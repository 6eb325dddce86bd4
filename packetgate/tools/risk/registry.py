"""The registry of known servers: the effects of a published package's tools, labelled from the source.

An entry applies only to a server that a package launcher starts from the public registry of packages, and only to a
tool whose name and input schema have not changed.
"""

import json
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
# a version that begins with a dot or ends like an archive is a local file, to npm
_NPM_SPEC = re.compile(
    r"((?:@[a-z0-9~-][\w.~-]*/)?[a-z0-9~-][\w.~-]*)(?:@(?!\.|.*\.(?i:tgz|tar|tar\.gz)$)([^/\\:\s]+))?"
)
_PYPI_SPEC = re.compile(r"([A-Za-z0-9][\w.-]*)(?:\[[\w.,-]*\])?(?:(==|@)([^/\\:\s]+))?")
_EXACT_VERSION = re.compile(r"\d+(?:\.\d+)+[\w.+-]*")


class ToolLabel(BaseModel):
    """Label of a tool of a known server."""

    model_config = ConfigDict(frozen=True)

    digest: str
    """`definition_digest` of the labelled tool."""
    risk: Risk
    """A tool that prints secrets is labelled as a write, so that it needs approval."""
    why: str = ""
    """The place in the source code, and its effect."""
    read_without: tuple[str, ...] = ()
    """Parameters of a tool that changes something; a call without any of them only reads."""
    outward: bool | None = None
    """Whether calls send arguments, or data that the tool reads, outside."""
    untrusted: bool | None = None
    private: bool | None = None
    undo: str | None = None
    """The server's tool that undoes a call, and its arguments in words."""


class KnownServer(BaseModel):
    """A package whose server is labelled, in a range of versions."""

    model_config = ConfigDict(frozen=True)

    package: str
    """Such as `npm:@scope/name` or `pypi:name`."""
    versions: str
    """Version specifiers, such as `>=1.0,<=1.4.2`."""
    server_version: str = ""
    """The version that the labelled server reports, which may differ from its package's version."""
    source: str = ""
    variables: tuple[str, ...] = ()
    """Names of variables that the package documents, and that change neither its code nor the recipient of a key."""
    tools: dict[str, ToolLabel]

    def covers(self, launched: "LaunchedPackage", reported_version: str) -> bool:
        """Return whether the entry applies to a launched server.

        A pinned version decides, otherwise the version that the server reports. If the labelled server did not report
        its package's version, the reported version is ignored.
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


class PackageLaunch(NamedTuple):
    """The package that a command line requests from a package launcher."""

    launcher: str
    """The launcher as written: a name or a path."""
    program: str
    """The launcher's name."""
    options: tuple[str, ...]
    """The words from the launcher to the package."""
    arguments: tuple[str, ...]
    """The server's own arguments."""
    package: LaunchedPackage


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

    def known_servers(self, launched: LaunchedPackage) -> tuple[KnownServer, ...]:
        """Return the entries of a package; without a pinned version, in any version."""
        return tuple(one for one in self.servers if one.covers(launched, launched.version or one.server_version))

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


def requested_launch(command: Sequence[str]) -> PackageLaunch | None:
    """Return the package that a command line requests from a launcher; None for another command or an unknown
    option."""
    if [word.casefold() for word in command[:2]] in (["cmd", "/c"], ["cmd.exe", "/c"]):
        command = command[2:]
    program, _, suffix = re.split(r"[/\\]", command[0] if command else "")[-1].partition(".")
    words = (program, *command[1:])
    launcher = next((known for known in _LAUNCHERS if words[: len(known)] == known), None)
    if launcher is None or suffix not in ("", "cmd", "exe"):
        return None
    place = len(launcher)
    while words[place : place + 1] and words[place] in _HARMLESS_OPTIONS:
        place += 1
    is_named = launcher == ("uvx",) and words[place : place + 1] == ("--from",)
    place += is_named
    kind = _LAUNCHERS[launcher]
    match = (_NPM_SPEC if kind == "npm" else _PYPI_SPEC).fullmatch(words[place]) if words[place:] else None
    if match is None:
        return None
    name = match[1] if kind == "npm" else re.sub(r"[-_.]+", "-", match[1]).casefold()
    version = match[match.re.groups] or ""
    if kind == "pypi" and match[2] == "@" and (program != "uvx" or not _is_version(version)):  # a local file or folder
        return None
    place += is_named
    if is_named and words[place : place + 1] not in ((match[1],), (name,)):  # `uvx --from` can start other programs
        return None
    package = LaunchedPackage(f"{kind}:{name}", version if _EXACT_VERSION.fullmatch(version) else "")
    return PackageLaunch(command[0], program, words[1 : place + 1], words[place + 1 :], package)


def _is_version(text: str) -> bool:
    try:
        return text == "latest" or bool(Version(text))
    except InvalidVersion:
        return False


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
