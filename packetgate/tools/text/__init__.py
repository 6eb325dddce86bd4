"""Words, stems, tokens, passages and differences of texts: what several families need."""
