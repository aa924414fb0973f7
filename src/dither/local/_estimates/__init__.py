"""Estimates from counts of reports, and what is done with them afterwards."""
