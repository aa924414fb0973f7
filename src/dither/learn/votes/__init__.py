"""Predictions and statistics from disjoint parts of the rows: votes of teachers, and estimates."""
