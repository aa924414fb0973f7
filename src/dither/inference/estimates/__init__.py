"""Estimates with intervals: means, differences, proportions, quantiles, covariances."""
