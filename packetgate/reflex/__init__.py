"""Deciders that need no model: words, schemas and checks."""
