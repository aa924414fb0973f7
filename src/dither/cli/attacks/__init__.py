"""Commands that attack: exact and private releases side by side."""
