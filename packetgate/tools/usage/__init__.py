"""Confirmed uses of tools, and calibration by the user's answers."""
