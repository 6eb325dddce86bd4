"""May this one call run? Checks, questions, grants, the journal, and the execution of calls."""
