"""llama.cpp in this process: GGUF files, grammars, and what the logits tell."""
