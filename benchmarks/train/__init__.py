"""Train the shipped weights on public data sets."""
