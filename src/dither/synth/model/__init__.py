"""The distribution that noisy marginals say most of, and what is measured for it."""
