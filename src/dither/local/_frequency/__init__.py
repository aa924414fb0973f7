"""Channels for shares of values: one file each."""
