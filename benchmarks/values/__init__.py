"""Measure how well Packetgate fills the arguments of a known tool from a request: `python -m benchmarks.values`."""
