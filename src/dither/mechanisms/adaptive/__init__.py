"""Mechanisms that look at the data before they choose their noise, or go on over time."""
