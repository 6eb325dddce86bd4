"""Measure the gate's confidence against the correctness of calls."""
