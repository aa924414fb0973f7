"""Synthesis of tables of a session: models, marginals, hierarchies, ranges, comparisons."""
