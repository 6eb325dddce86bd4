"""The server that is called: the official SDK's, on standard input and output."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("echo", log_level="ERROR")


@server.tool(structured_output=False)
def read_echo(text: str) -> str:
    """Read an echo."""
    return text


if __name__ == "__main__":
    server.run()
