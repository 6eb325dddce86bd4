"""Open the hub of configured servers and built-in tools."""

import asyncio
import os
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import ValidationError

from packetgate.ranking.ranking import Ranker
from packetgate.state.base import ms_since
from packetgate.state.routing import Risk, ToolResult
from packetgate.tools.catalogue.preferences import Preferences
from packetgate.tools.policy.rules import Rule
from packetgate.tools.risk.registry import Registry, load_registry
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.result_store import ResultStore
from packetgate.toolsets.builtin.changing import moving_tools, writing_tools
from packetgate.toolsets.builtin.corpus import Corpus
from packetgate.toolsets.builtin.executing import executing_tools
from packetgate.toolsets.builtin.files import Root, ToolFailure
from packetgate.toolsets.builtin.reading import listing_tools, reading_tools
from packetgate.toolsets.builtin.sandbox import Sandbox, SandboxSettings
from packetgate.toolsets.builtin.searching import embedding_tools, searching_tools
from packetgate.toolsets.builtin.tool import BUILT_IN, BuiltinTool
from packetgate.toolsets.builtin.undo_store import UndoStore
from packetgate.toolsets.builtin.undoing import undoing_tools
from packetgate.toolsets.servers.config import BUILT_IN_NAMES, McpConfig, ServerConfig
from packetgate.toolsets.servers.hub import McpHub
from packetgate.toolsets.servers.results import to_result_async
from packetgate.toolsets.servers.server import Server

if TYPE_CHECKING:
    from fastmcp.client.transports import ClientTransport
    from langchain_core.embeddings import Embeddings

    from packetgate.toolsets.servers.connection import Connection

NETWORK_VARIABLES = (
    "SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE NODE_EXTRA_CA_CERTS HTTP_PROXY HTTPS_PROXY NO_PROXY ALL_PROXY"
    " http_proxy https_proxy no_proxy all_proxy"
).split()
"""Environment variables that server processes inherit in addition to MCP's own list: `npx` and `uvx` need them to
install packages."""
_GIT_SETTINGS = {
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.pager": "cat",
    "protocol.ext.allow": "never",
}
GIT_VARIABLES = {
    "GIT_CONFIG_COUNT": str(len(_GIT_SETTINGS)),
    **{f"GIT_CONFIG_KEY_{number}": name for number, name in enumerate(_GIT_SETTINGS)},
    **{f"GIT_CONFIG_VALUE_{number}": value for number, value in enumerate(_GIT_SETTINGS.values())},
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
}
"""Environment variables of servers: reading a repository runs none of its programs. The entry's own override them."""


class BuiltinServer(Server):
    """Server of the built-in tools."""

    def __init__(self, name: str, tools: Iterable[BuiltinTool], root: Path, kept: ResultStore | None = None) -> None:
        super().__init__(name)
        self._kept = kept
        self._digest = f"{BUILT_IN}, of {root.absolute()}"
        self._tools = {tool.name: tool for tool in tools}

    def limit_to_reads(self) -> Self:
        """Remove all tools except reads, offer these only if another server has path arguments, and return the
        server."""
        self._tools = {name: tool for name, tool in self._tools.items() if tool.risk is Risk.READ}
        self.requires_path_server = True
        return self

    def tool_specs(self) -> Iterable[ToolSpec]:
        """Return the definitions of the server's tools."""
        return (replace(tool.spec(self.name), server_digest=self._digest) for tool in self._tools.values())

    async def call(self, tool: str, params: dict[str, Any], idempotency_key: str = "") -> ToolResult:
        """Call a built-in tool and return its result."""
        started, structured = time.perf_counter(), None
        try:
            (text, structured), failed = await self._tools[tool].call(params), False
        except (ToolFailure, ValidationError) as error:
            text, failed = str(error), True
        store_text = self._kept.keep if self._kept and not self._tools[tool].supports_paging else None
        took_ms = ms_since(started)
        return await to_result_async(text, structured, took_ms, is_error=failed, complete=True, store_text=store_text)


async def open_hub(
    config: McpConfig,
    root: Path,
    log_dir: Path,
    embeddings: "Embeddings | None",
    *,
    patience_s: float,
    preferences: Preferences | None = None,
    sandbox: SandboxSettings | None = None,
    kept: ResultStore | None = None,
    ranker: Ranker | None = None,
    caller_reads_results: bool = False,
    other_servers: Iterable[Server] = (),
    undo: UndoStore | None = None,
) -> McpHub:
    """Return the hub of the configured servers, the built-in servers and `other_servers`; it is not entered yet.

    Args:
        caller_reads_results: whether the caller reads long results itself.
    """
    servers = [*other_servers]
    if config.servers:
        can_read_stored = caller_reads_results or config.builtin != "none"

        def connections() -> "list[Connection]":
            registry = load_registry()
            options: dict[str, Any] = {"store_texts": can_read_stored, "registry": registry, "sandbox": sandbox}
            return [new_connection(server, log_dir, kept, **options) for server in config.servers]

        servers += await asyncio.to_thread(connections)  # imports FastMCP, which is slow
    if config.builtin != "none":
        rules = preferences.policy.rules if preferences else ()
        builtin = await asyncio.to_thread(builtin_servers, root, embeddings, sandbox, kept, rules, undo=undo)
        servers += builtin.values() if config.builtin == "all" else [builtin["ai"].limit_to_reads()]
    return McpHub(servers, patience_s=patience_s, preferences=preferences, ranker=ranker)


def new_connection(
    config: ServerConfig,
    log_dir: Path,
    kept: ResultStore | None = None,
    *,
    store_texts: bool = True,
    registry: Registry | None = None,
    sandbox: SandboxSettings | None = None,
) -> "Connection":
    """Return a connection to a configured server; it is not opened yet. The server's log is a file in `log_dir`. Its
    home folder in the sandbox, its login, and the tools that it lists are stored next to that folder.

    Args:
        kept: stores attachments and, with `store_texts`, long texts.
        registry: the known servers.
        sandbox: without it, only a server whose entry asks for the sandbox is confined.
    """
    from packetgate.toolsets.servers.confined import server_start
    from packetgate.toolsets.servers.connection import Connection
    from packetgate.toolsets.servers.http import remote_transport
    from packetgate.toolsets.servers.oauth import StoredLogin, may_log_in
    from packetgate.toolsets.servers.remembered import ListMemory
    from packetgate.toolsets.servers.stdio import LoggedTransport, ServerLog

    log = ServerLog(log_dir / f"{config.name}.log")
    homes, logins = log_dir.with_name("servers"), log_dir.with_name("logins")
    known, settings = registry or Registry(), sandbox or SandboxSettings(mode="off")

    def transport() -> "ClientTransport":
        entry = config.resolved_entry()
        if "command" not in entry:
            auth = StoredLogin(config.name, entry, logins) if may_log_in(entry) else entry.get("auth")
            return remote_transport(entry, auth)
        log.start()
        inherited = {name: os.environ[name] for name in NETWORK_VARIABLES if name in os.environ}
        start = server_start(config, entry, settings, known, homes)
        return LoggedTransport(start, inherited | GIT_VARIABLES, log)

    memory = ListMemory(log_dir.with_name("definitions"))
    keep = kept.keep if kept else None
    return Connection(config, transport, keep=keep, store_texts=store_texts, registry=registry, memory=memory)


def builtin_servers(
    root: Path,
    embeddings: "Embeddings | None" = None,
    sandbox: SandboxSettings | None = None,
    kept: ResultStore | None = None,
    rules: Iterable[Rule] = (),
    *,
    undo: UndoStore | None = None,
) -> dict[str, BuiltinServer]:
    """Return the built-in servers by name. Except for programs of `ai.execute`, they access only files below `root`.

    Args:
        embeddings: used by `embedding.query`, which otherwise searches by words.
        rules: the user's policy. Lists and searches omit files that `ai.read` may not read without approval.
        undo: records the changes; without it, none can be undone.
    """
    confined_root = Root(root, rules)
    corpus = Corpus(confined_root)
    ai_tools = (
        *reading_tools(confined_root, kept),
        *listing_tools(confined_root),
        *searching_tools(confined_root, corpus),
        *writing_tools(confined_root, undo),
        *moving_tools(confined_root, undo),
        *undoing_tools(confined_root, undo),
        *executing_tools(confined_root, Sandbox(sandbox)),
    )
    tools = (ai_tools, embedding_tools(corpus, embeddings))
    return {name: BuiltinServer(name, group, root, kept) for name, group in zip(BUILT_IN_NAMES, tools, strict=True)}
