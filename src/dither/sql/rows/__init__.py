"""The FROM and WHERE clauses: which rows a query is about."""
