"""Budgets of a policy: what blocks of rows have, and quotas of those who ask."""
