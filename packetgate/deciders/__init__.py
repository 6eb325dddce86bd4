"""The decider of each stage: a language model, and a plain fallback. Plug-ins may propose, score and stand in."""
