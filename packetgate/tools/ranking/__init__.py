"""Which tools fit a request, by the words they share."""
