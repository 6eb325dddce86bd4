"""What may run, and running it."""
