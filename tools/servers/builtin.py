"""Servers of our own tools, called in this process: no protocol, and no session that could break."""

import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from state.base import ms_since
from state.routing import ToolResult
from tools.builtin.ai import ai_tools
from tools.builtin.embedding import embedding_tools
from tools.builtin.failures import ToolFailure
from tools.builtin.root import Root
from tools.builtin.tool import Answer, BuiltinTool
from tools.servers.results import to_result
from tools.servers.server import Server

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings


class BuiltinServer(Server):
    """Its tools are described when they are first asked for."""

    def __init__(self, name: str, tools: Iterable[BuiltinTool], root: Path) -> None:
        super().__init__(name)
        self._digest = f"built in, of {root.absolute()}"
        self._tools = {tool.name: tool for tool in tools}

    async def connect(self, instead_of: int) -> None:
        """Describe the tools."""
        self.session = instead_of + 1
        self.specs = tuple(replace(tool.spec(self.name), server_digest=self._digest) for tool in self._tools.values())
        self.state = "ready"

    async def call(self, tool: str, params: dict[str, Any]) -> ToolResult:
        """Call a tool by its own name."""
        started = time.perf_counter()
        try:
            answer, is_error = await self._tools[tool].call(params), False
        except (ToolFailure, ValidationError) as error:
            answer, is_error = Answer(str(error)), True
        return to_result(*answer, ms_since(started), is_error=is_error)


def builtin_servers(root: Path, embeddings: "Embeddings | None" = None) -> dict[str, BuiltinServer]:
    """Return the built-in servers by name, confined to `root`. Touches no disk until a tool is called.

    Without `embeddings`, `embedding.query` searches by words.
    """
    tools = {"ai": ai_tools(Root(root)), "embedding": embedding_tools(Root(root), embeddings)}
    return {name: BuiltinServer(name, own, root) for name, own in tools.items()}
