"""A small encoder that reads a request and one tool together, and judges whether the tool serves the request."""
