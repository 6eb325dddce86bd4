"""Chat models and requests to them: the pool, llama.cpp, OpenAI-compatible endpoints, structured answers."""
