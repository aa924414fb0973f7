"""Dummy rows: tables made from the policy's public facts, of which no row is real.

- ``_columns``: values of one column, by its facts.
- ``_tables``: whole tables, with keys that match where tables are joined.
"""

from dither.policy.dummies._columns import StoredColumns
from dither.policy.dummies._tables import MOST_ROWS, NOTICE, dummy_table

__all__ = ["MOST_ROWS", "NOTICE", "StoredColumns", "dummy_table"]
