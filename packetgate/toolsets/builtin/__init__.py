"""Built-in tools for one working folder: `ai` reads, writes and runs programs, `embedding` searches."""
