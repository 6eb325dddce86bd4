"""Finding what a model meant in what it wrote."""
