"""How well a tool's arguments are filled from a request, the tool being given: `python -m benchmarks.values`."""
