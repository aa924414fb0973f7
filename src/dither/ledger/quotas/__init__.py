"""Quotas beside what is promised, reservations, and how long an account lasts."""
