"""The graph: stages, edges, routes, and the composition of it all."""
