"""What chance adds to a guarantee: shuffling, one sample for several releases, repeated runs."""
