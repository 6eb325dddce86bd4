"""The graph: stages, edges, routes, and the creation of the graph from settings."""
