"""Laws of mechanisms that see a random sample of the units."""
