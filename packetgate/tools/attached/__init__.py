"""Files and images that users attach to a request."""
