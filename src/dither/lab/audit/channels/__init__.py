"""Audits of local channels, over all of their inputs at once."""
