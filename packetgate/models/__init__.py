"""The models and how they are asked: the pool, llama.cpp, OpenAI-compatible endpoints, structured answers."""
