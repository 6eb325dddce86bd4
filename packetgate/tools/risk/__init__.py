"""The risk of a tool and of a single call, with reasons."""
