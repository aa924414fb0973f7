"""Commands that ask a policy's tables: queries, inference, synthesis, hierarchies, models."""
