"""One tool, and what is judged of it from what its server says: description, category, risk."""
