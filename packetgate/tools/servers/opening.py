"""Open the hub of the configured and built-in servers."""

import asyncio
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import ValidationError

from packetgate.state.base import ms_since
from packetgate.state.errors import ConfigError
from packetgate.state.routing import Risk, ToolResult
from packetgate.tools.builtin.ai import ai_tools
from packetgate.tools.builtin.corpus import Corpus, LexicalIndex
from packetgate.tools.builtin.embedding import embedding_tools
from packetgate.tools.builtin.files import Root, ToolFailure
from packetgate.tools.builtin.sandbox import Sandbox, SandboxSettings
from packetgate.tools.builtin.tool import BUILT_IN, Answer, BuiltinTool
from packetgate.tools.catalogue.chains import CHAINS, Chain
from packetgate.tools.catalogue.preferences import Preferences
from packetgate.tools.policy.rules import Rule
from packetgate.tools.ranking.ranking import SHIPPED, Meaning
from packetgate.tools.servers.config import BUILT_IN_NAMES, McpConfig
from packetgate.tools.servers.hub import McpHub
from packetgate.tools.servers.results import to_result_aside
from packetgate.tools.servers.server import Server
from packetgate.tools.text.result_store import ResultStore

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings


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
    meaning: Meaning = SHIPPED,
    listings: Path | None = None,
    has_reader: bool = False,
    more: Iterable[Server] = (),
) -> McpHub:
    """Return the hub of these servers and `more`, not yet entered. The built-in servers run in this process.

    With them, or where the caller `has_reader`, long texts are `kept` to be read on in. Such a caller makes single
    calls, so it gets no chains. `listings` is the folder where the tools of the other servers are stored.
    """
    reads_on = has_reader or config.builtin != "none"
    servers = [*more]
    if preferences is not None and preferences.chains and not has_reader:
        servers.append(
            _chains(preferences.chains, [*(one.name for one in servers), *(one.name for one in config.servers)])
        )
    if config.servers:
        servers += await asyncio.to_thread(_configured, config, log_dir, kept, listings, reads_on)
    if config.builtin != "none":
        rules = preferences.policy.rules if preferences else ()
        builtin = await asyncio.to_thread(builtin_servers, root, embeddings, sandbox, kept, rules)
        servers += builtin.values() if config.builtin == "all" else [builtin["ai"].for_reading()]
    return McpHub(servers, patience_s=patience_s, preferences=preferences, meaning=meaning)


def _chains(chains: Mapping[str, Chain], names: Collection[str]) -> Server:
    """Return the server of the chains, beside servers of these names.

    Raises:
        ConfigError: another server has its name.
    """
    from packetgate.tools.servers.chains import ChainServer

    if CHAINS in names:
        raise ConfigError(f"a server is called {CHAINS!r}, as that of the chains of packetgate.toml: rename it")
    return ChainServer(chains)


def _configured(
    config: McpConfig, log_dir: Path, kept: ResultStore | None, listings: Path | None, reads_on: bool
) -> list[Server]:
    from packetgate.tools.servers.starting import configured  # imports FastMCP, which takes as long as all else
    from packetgate.tools.servers.stored_listings import StoredListings

    keep = kept.keep if kept else None
    stored = StoredListings(listings) if listings else None
    return [configured(server, log_dir, keep if reads_on else None, keep, stored) for server in config.servers]


class BuiltinServer(Server):
    """Built-in tools, called in this process without a protocol."""

    def __init__(self, name: str, tools: Iterable[BuiltinTool], root: Path, kept: ResultStore | None = None) -> None:
        super().__init__(name)
        self._kept = kept
        self._digest = f"{BUILT_IN}, of {root.absolute()}"
        self._tools = {tool.name: tool for tool in tools}

    def for_reading(self) -> Self:
        """Return the server with only its read tools, offered beside servers that take paths."""
        self._tools = {name: tool for name, tool in self._tools.items() if tool.risk is Risk.READ}
        self.beside_paths = True
        return self

    async def connect(self, instead_of: int) -> None:
        """Describe the tools."""
        self.session = instead_of + 1
        self.specs = tuple(replace(tool.spec(self.name), server_digest=self._digest) for tool in self._tools.values())
        self.state = "ready"

    async def call(self, tool: str, params: dict[str, Any], idempotency_key: str = "") -> ToolResult:
        """Call a tool."""
        started = time.perf_counter()
        try:
            answer, is_error = await self._tools[tool].call(params), False
        except (ToolFailure, ValidationError) as error:
            answer, is_error = Answer(str(error)), True
        keep = self._kept.keep if self._kept and not self._tools[tool].reads_on else None
        return await to_result_aside(*answer, ms_since(started), is_error=is_error, complete=True, keep=keep)


def builtin_servers(
    root: Path,
    embeddings: "Embeddings | None" = None,
    sandbox: SandboxSettings | None = None,
    kept: ResultStore | None = None,
    rules: Iterable[Rule] = (),
) -> dict[str, BuiltinServer]:
    """Return the built-in servers by name, confined to `root`. The disk is not accessed until a tool is called.

    Args:
        embeddings: for `embedding.query`, which else searches by words.
        rules: the user's policy. Files that may not be read without asking are in no list and no search.
    """
    place, by_words = Root(root, rules), LexicalIndex()
    corpus = Corpus(place)
    tools = (
        ai_tools(place, Sandbox(sandbox), kept, corpus, by_words),
        embedding_tools(corpus, by_words, embeddings),
    )
    named = zip(BUILT_IN_NAMES, tools, strict=True)
    return {name: BuiltinServer(name, own, root, kept) for name, own in named}
