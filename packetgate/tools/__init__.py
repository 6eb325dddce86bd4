"""Tools: what there is, what it says of itself, what it may do, and how it is called."""
