"""Released rows: who is found in them, and what classes of them give away."""
