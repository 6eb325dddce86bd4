"""Where tools come from: MCP servers, functions, LangChain tools, the built-in ones, and the sandbox they run in."""
