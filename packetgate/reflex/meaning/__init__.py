"""Compare tools and requests by meaning, with a small encoder, and rank tools by it."""
