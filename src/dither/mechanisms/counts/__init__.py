"""Additive noise on integers and on real numbers: one file each."""
