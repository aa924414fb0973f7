"""Is the chain whole? Every entry hashed again, every total and every block added up again."""
