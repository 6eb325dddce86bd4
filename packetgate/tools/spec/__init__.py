"""The definition of a tool, and the data derived from it: brief description, category, short schema."""
