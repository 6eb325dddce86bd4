"""MCP servers: configuration, connections, and results of calls."""
