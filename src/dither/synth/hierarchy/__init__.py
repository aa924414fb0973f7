"""Counts of places at several levels that add up."""
