"""Chat models: kinds of models, the pool of both roles, calls, text and structured answers."""
