"""Filling a tool's parameters from the words of a request: what is mentioned, as what value, for which parameter."""
