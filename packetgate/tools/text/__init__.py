"""Words, tokens, passages and documents."""
