"""Measure the rating of a tool's risk by its definition, and maintain the registry of known servers."""
