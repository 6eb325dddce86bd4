"""Models behind OpenAI's protocol, at OpenAI or any other server."""
