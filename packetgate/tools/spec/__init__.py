"""The definition of a tool, and what is derived from it: brief description, category, short schema."""
