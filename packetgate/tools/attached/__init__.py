"""Files that users attach to a request, and pictures."""
