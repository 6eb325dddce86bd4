"""The decider of each stage: a language model, and a plain fallback. Plug-ins may propose calls, score them, and decide
in place of a model."""
