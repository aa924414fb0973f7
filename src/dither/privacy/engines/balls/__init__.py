"""Profiles in ball arithmetic: as many digits as are needed, proved."""
