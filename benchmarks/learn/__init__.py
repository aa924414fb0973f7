"""Learning beside its peers."""
