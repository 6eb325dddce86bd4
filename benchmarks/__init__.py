"""Benchmarks of Packetgate. Each cost is a ratio to a base that is measured in the same run."""
