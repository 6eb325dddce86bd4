"""Repair requested calls where that is safe, and validate them."""
