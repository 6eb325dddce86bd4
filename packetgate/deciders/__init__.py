"""The decider of each stage: a language model, or the rule-based `reflex`, which is also the fallback."""
