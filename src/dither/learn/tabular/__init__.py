"""Models of columns: additive models, regressions, naive Bayes, clusters and axes."""
