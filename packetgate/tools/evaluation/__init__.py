"""What a model is evaluated on, and what comes of it: cases of our own, and the passport."""
