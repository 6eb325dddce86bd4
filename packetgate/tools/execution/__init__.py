"""Permission checks, grants, the journal, and the execution of calls."""
