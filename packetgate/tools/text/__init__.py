"""Words, tokens, passages, differences and documents."""
