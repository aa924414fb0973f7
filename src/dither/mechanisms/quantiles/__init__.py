"""Quantiles from noisy counts on trees of bins."""
