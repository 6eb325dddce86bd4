"""Middleware of LangChain's `create_agent`: gates the model's calls, and keeps its list of tools stable."""

from packetgate.middleware.middleware import PacketgateMiddleware
from packetgate.middleware.tool_list import MAX_TOOLS, SEARCH

__all__ = ["MAX_TOOLS", "SEARCH", "PacketgateMiddleware"]
