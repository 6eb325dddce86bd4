"""The proxy beside FastMCP's own, and FastMCP's search."""
