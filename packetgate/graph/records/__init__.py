"""What is kept of turns in the graph's store."""
