"""Learning from tables of a session: ``session.table("visits").learn(epsilon=1)``."""
