"""Model evaluation: the test cases, and the report on a model (its passport)."""
