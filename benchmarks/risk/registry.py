"""`python -m benchmarks.risk.registry`: build and check the registry of known servers.

`build LABELS` writes the shipped registry from the files in a folder of labels. A file of labels has `package`,
`version`, `source`, `definitions` (the tools as the server lists them), and `tools`: the risk of each tool, and the
reason.

`check [PACKAGE ...]` starts the labelled versions of the servers, and compares their tools with the registry.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from packaging.version import Version

from packetgate.tools.risk.registry import SHIPPED, KnownServer, definition_digest, load_registry
from packetgate.toolsets.servers.config import McpConfig, ServerConfig, read_server_entry
from packetgate.toolsets.servers.definitions import usable_tools
from packetgate.toolsets.servers.opening import open_hub

_LABEL_FIELDS = ("risk", "why", "read_without", "outward", "untrusted", "private", "undo")
_STARTS = Path(__file__).with_name("registry_starts.json")
"""Variables, and arguments by package, that servers need before they list tools; the values are made up."""
_PATIENCE_S = 240.0


def build(labels: Path) -> int:
    """Write the registry; its version is that of the shipped file plus one."""
    servers = [server for path in sorted(labels.glob("*.json")) for server in _servers_in(path)]
    old = json.loads(SHIPPED.read_text("utf-8")) if SHIPPED.exists() else {}
    if servers != old.get("servers"):
        document = {"version": old.get("version", 0) + 1, "servers": servers}
        SHIPPED.write_text(json.dumps(document, indent=0, sort_keys=True, ensure_ascii=True) + "\n", "utf-8")
    registry = load_registry()
    tools = [label for server in registry.servers for label in server.tools.values()]
    risks = {risk: sum(label.risk == risk for label in tools) for risk in ("read", "write", "execute")}
    print(f"version {registry.version}: {len(registry.servers)} servers, {len(tools)} tools: {risks}")
    return 0


def _servers_in(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the entry of a file of labels, and a second entry if some tools have an alternative definition."""
    content = json.loads(path.read_text("utf-8"))
    version = str(content["version"])
    for key in ("definitions", "definitions_alternative"):
        tools = dict(_labelled(path, content[key], content["tools"])) if content.get(key) else {}
        if tools:
            entry = {
                "package": content["package"],
                "versions": content.get("versions") or f">={version},<{_next_incompatible(version)}",
                "server_version": str(content.get("server_version") or ""),
                "source": content["source"],
                "tools": tools,
            }
            KnownServer.model_validate(entry)
            yield entry


def _next_incompatible(version: str) -> str:
    """Return the next version that may be incompatible: the next major version or, for 0.x, the next minor version."""
    release = Version(version).release
    return f"0.{release[1] + 1}" if release[0] == 0 else str(release[0] + 1)


def _labelled(path: Path, definitions: list[Any], labels: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    usable, _, left_out, _ = usable_tools(definitions, set(), lambda _: None)
    for note in left_out:
        print(f"{path.name}: not usable: {note}")
    for tool in usable:
        name = tool["name"]
        if name not in labels:
            print(f"{path.name}: no label: {name}")
            continue
        label = {field: labels[name].get(field) for field in _LABEL_FIELDS}
        if label["undo"] and label["undo"].split()[0] not in labels:
            sys.exit(f"{path.name}: {name}: undo must begin with a tool of the same server, not {label['undo']!r}")
        digest = definition_digest(name, tool["inputSchema"])
        yield name, {"digest": digest, **{field: value for field, value in label.items() if value is not None}}


async def check(packages: list[str]) -> int:
    """Start servers, and print which tools match. Return 1 if a tool that a started server lists does not match."""
    registry, listed, different, asked = load_registry(), 0, 0, 0
    starts = json.loads(_STARTS.read_text("utf-8"))
    for server in registry.servers:
        if packages and server.package not in packages:
            continue
        kind, _, name = server.package.partition(":")
        version = server.versions.removeprefix(">=").partition(",")[0]
        command = ["npx", "-y", f"{name}@{version}"] if kind == "npm" else ["uvx", f"{name}=={version}"]
        arguments = [*command[1:], *starts["args"].get(server.package, ())]
        raw = {"command": command[0], "args": arguments, "env": starts["env"]}
        with tempfile.TemporaryDirectory() as folder:
            config = ServerConfig("known", {**read_server_entry(raw).fields, "cwd": folder})
            hub = await open_hub(
                McpConfig((config,), "none"), Path(folder), Path(folder, "logs"), None, patience_s=_PATIENCE_S
            )
            async with hub:
                catalogue, (health,) = await hub.catalogue(), hub.health()
        known = [spec for spec in catalogue.values() if spec.risk_source.startswith("registry")]
        unknown = [spec.upstream_name for spec in catalogue.values() if spec not in known]
        listed, different = listed + len(catalogue), different + len(unknown)
        asked += sum(spec.is_unconfirmed_read for spec in catalogue.values())
        problem = f": {health.problem}" if health.problem else ""
        print(f"{server.package} {version}: {len(known)} of {len(catalogue)} listed tools known{problem}", flush=True)
        if unknown:
            print(f"  not known, or changed: {', '.join(unknown)}")
    print(f"{listed} tools listed, {different} not known, {asked} unconfirmed reads")
    return int(different > 0)


def main() -> None:
    """Build or check."""
    parser = argparse.ArgumentParser(prog="benchmarks.risk.registry", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    building = commands.add_parser("build")
    building.add_argument("labels", type=Path)
    commands.add_parser("check").add_argument("packages", nargs="*")
    args = parser.parse_args()
    sys.exit(build(args.labels) if args.command == "build" else asyncio.run(check(args.packages)))


if __name__ == "__main__":
    main()
