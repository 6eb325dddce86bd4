"""The few tools that a turn may use: who is a candidate, who is chosen, how they read in a prompt."""
