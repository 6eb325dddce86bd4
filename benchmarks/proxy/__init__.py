"""Compare the proxy with FastMCP's proxy and FastMCP's search."""
