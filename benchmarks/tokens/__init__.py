"""Measure the tokens that a model receives to select tools."""
