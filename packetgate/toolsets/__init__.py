"""Sources of tools: MCP servers, functions, LangChain tools and the built-in tools; and the sandbox they run in."""
