"""Training of what the router has learned, on public data sets."""
