"""Benchmarks of paths and series, of which a unit has one each."""
