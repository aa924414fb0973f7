"""Synthetic tables beside their peers."""
