"""Bounds, limits and keys that are learned at a price, for policies that do not declare them."""
