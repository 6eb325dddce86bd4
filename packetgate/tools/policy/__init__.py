"""What may run without a question, and what may not at all: the user's rules, and the approvals they had remembered."""
