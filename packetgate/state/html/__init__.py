"""A packet as HTML, for notebooks and pages: no script, nothing loaded from elsewhere, and all of its data as text."""
