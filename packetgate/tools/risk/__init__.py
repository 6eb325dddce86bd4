"""What a tool, and what a call of it, may do to the world, and why that is thought."""
