"""Models, and requests to models: the pool, llama.cpp, OpenAI-compatible endpoints, structured answers."""
