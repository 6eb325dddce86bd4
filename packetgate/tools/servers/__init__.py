"""MCP servers: how they are configured, started, reached, and what they answer."""
