"""Try inputs that failed in earlier versions again."""
