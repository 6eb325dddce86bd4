"""A tool router: every request is a typed packet that passes a reviewed gate before a tool may run."""
