"""Measure how often the needed tools are on the palette."""
