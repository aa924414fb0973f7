"""Channels for numbers: means and distributions on a public lattice, one file each."""
