"""The journal in the database: append-only, chained by hashes."""
