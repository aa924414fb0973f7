"""Picking candidates by their utility: one of them, several, or those above a threshold."""
