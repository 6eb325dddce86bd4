"""A small encoder that reads a request and one tool together: does the tool serve it, and which words fill what."""
