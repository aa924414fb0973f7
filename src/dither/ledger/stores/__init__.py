"""What keeps a ledger: a file of SQLite, or a schema of a PostgreSQL database."""
