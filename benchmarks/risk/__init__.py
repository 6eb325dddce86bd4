"""How well the verbs of a tool's definition show its risk, and the registry of known servers."""
