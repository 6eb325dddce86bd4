"""What a model is sent so that it can choose."""
