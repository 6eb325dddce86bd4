"""Who decides at each stage: a language model, reflexes that need none, or one standing in for the other."""
