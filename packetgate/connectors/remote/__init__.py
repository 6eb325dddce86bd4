"""Sessions on a LangGraph-API server."""
