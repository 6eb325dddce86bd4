"""Measure the ranking of tools."""
