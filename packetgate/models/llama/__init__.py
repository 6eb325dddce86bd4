"""llama.cpp in this process: GGUF files, grammars and token probabilities."""
