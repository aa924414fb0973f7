"""Estimates and intervals beside what is naive, printed or public."""
