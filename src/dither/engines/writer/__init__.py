"""A job as SQL: its rows, each unit's bounded contribution, and the sums."""
