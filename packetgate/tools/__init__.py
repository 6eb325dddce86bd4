"""Tools: definitions, servers, catalogue, permissions and execution."""
