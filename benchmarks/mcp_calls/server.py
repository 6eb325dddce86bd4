"""Serve the called tool with the official SDK's server, on standard input and output."""

from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("echo", log_level="ERROR")


@server.tool(structured_output=False, annotations=ToolAnnotations(read_only_hint=True))
def read_echo(text: str) -> str:
    """Read an echo."""
    return text


if __name__ == "__main__":
    server.run()
