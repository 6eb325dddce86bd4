"""Train the encoder that reads a request and a tool together."""
