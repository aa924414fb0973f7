"""Inference on tables of a session: ``session.table("visits").infer(epsilon=0.5)``."""
