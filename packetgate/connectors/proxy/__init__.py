"""One MCP server in front of all configured servers."""
