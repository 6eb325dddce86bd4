"""Usage records of each turn: the request, selected tools, approvals and outcomes."""
