"""Decide whether a call may run: checks, questions, grants, the journal, and the execution of calls."""
