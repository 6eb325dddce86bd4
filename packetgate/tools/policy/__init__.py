"""The user's policy rules (allow, ask, deny), and the patterns that rules and grants use."""
