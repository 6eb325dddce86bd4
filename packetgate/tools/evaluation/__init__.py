"""Model evaluation: our own test cases, and the report on a model (its passport)."""
