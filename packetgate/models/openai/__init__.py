"""Models behind OpenAI's protocol: OpenAI itself, or any server that speaks it."""
