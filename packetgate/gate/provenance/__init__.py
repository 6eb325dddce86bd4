"""Trace the origin of each argument of a call, and flag the arguments that the user must see."""
