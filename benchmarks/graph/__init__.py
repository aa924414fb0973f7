"""Errors of graph statistics."""
