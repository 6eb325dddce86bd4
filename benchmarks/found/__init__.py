"""Inputs that were found to fail, tried again."""
