"""Headline figures, each with its peer in the same run."""
