"""Times to an event: survival curves and the log-rank test."""
