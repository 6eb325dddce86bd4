"""How well tools are chosen and called without a language model, on labelled requests."""
