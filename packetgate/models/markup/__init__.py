"""Cutting tool markup and links out of answers."""
