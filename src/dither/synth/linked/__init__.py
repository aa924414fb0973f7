"""Linked tables: a unit, its rows, and rows of those, in order, with keys that join."""
