"""Deciders that ask a language model, any LangChain chat model."""
