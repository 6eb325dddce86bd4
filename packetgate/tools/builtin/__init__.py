"""The built-in MCP servers: `ai` reads, writes and runs, `embedding` searches, all below one working folder."""
