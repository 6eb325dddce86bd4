"""Measure how well the arguments of a known tool are filled from a request: `python -m benchmarks.values`."""
