"""The page in figures: ``python -m benchmarks.page``."""
