"""Asking the user: the question, its preview, what a reply means, and what it does to the packet."""
