"""The demo: a policy, releases, their certificates and an attack, end to end on real data."""
