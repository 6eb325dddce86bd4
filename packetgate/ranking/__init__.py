"""Rank tools for a request by shared words, vectors and learned trees."""
