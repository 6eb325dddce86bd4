"""Adds up the till of the shop."""

__version__ = "0.3.0"
