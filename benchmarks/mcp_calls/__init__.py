"""Measure calls of an MCP tool: through the hub, the official SDK, and LangChain's adapters."""
