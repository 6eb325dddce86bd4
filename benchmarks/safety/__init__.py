"""Measure how often prompt injections succeed, with the public AgentDojo, without a model."""
