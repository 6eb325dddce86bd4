"""Measure selection and calls without a language model, on labelled requests."""
