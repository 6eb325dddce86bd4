"""Rules and small models for use without a language model: a plug-in, which no other room imports."""
