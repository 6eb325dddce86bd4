"""Fill a tool's parameters from a request: find mentions, convert them to values, assign them to parameters."""
