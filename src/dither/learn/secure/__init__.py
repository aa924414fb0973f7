"""Sums that are opened as sums alone: by a key, or by servers together."""
