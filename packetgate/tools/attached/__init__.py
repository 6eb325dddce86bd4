"""What users attach to a request, and pictures wherever they come from."""
