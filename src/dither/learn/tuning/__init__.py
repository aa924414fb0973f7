"""Choosing hyper-parameters privately: the best of a random number of runs."""
