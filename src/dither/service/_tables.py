"""What a service keeps of people, their keys and their jobs: `Database` opens it.

It is no part of the ledger, which may be shown to anybody.
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy import Boolean, Column, Float, Integer, LargeBinary, MetaData, Table, Text

from dither.service._database import KeptTables

__all__ = ["SERVICE", "jobs", "keys", "log", "pauses", "people", "sessions"]

tables = MetaData()

version = Table("service_meta", tables, Column("version", Integer, nullable=False))

people = Table(
    "service_people",
    tables,
    Column("name", Text, primary_key=True),
    Column("role", Text, nullable=False),
    Column("disabled", Boolean, nullable=False, default=False),
    Column("created", Float, nullable=False),
)

keys = Table(
    "service_keys",
    tables,
    Column("id", Text, primary_key=True),
    Column("person", Text, nullable=False, index=True),
    Column("hash", LargeBinary, nullable=False, unique=True),
    Column("created", Float, nullable=False),
    Column("expires", Float),
    Column("revoked", Boolean, nullable=False, default=False),
)

sessions = Table(
    "service_sessions",
    tables,
    Column("hash", LargeBinary, primary_key=True),
    Column("person", Text, nullable=False, index=True),
    Column("role", Text, nullable=False),
    Column("csrf", LargeBinary, nullable=False),
    Column("key", Text),
    Column("expires", Float, nullable=False),
)

jobs = Table(
    "service_jobs",
    tables,
    Column("id", Text, primary_key=True),
    Column("person", Text, nullable=False, index=True),
    Column("token", Text, nullable=False),
    Column("purpose", Text),
    Column("reservation", Text),
    Column("ask", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("requested", Text, nullable=False),
    Column("digest", Text, nullable=False, index=True),
    Column("tables", Text, nullable=False),
    Column("price", Text, nullable=False),
    Column("state", Text, nullable=False, index=True),
    Column("attempts", Integer, nullable=False, default=0),
    Column("server", Text),
    Column("beat", Float),
    Column("entry", Integer),
    Column("replayed", Boolean, nullable=False, default=False),
    Column("failure", Text),
    Column("decided", Text),
    Column("created", Float, nullable=False),
    sa.UniqueConstraint("person", "token"),
)

pauses = Table(
    "service_pauses",
    tables,
    Column("table", Text, primary_key=True),
    Column("by", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("created", Float, nullable=False),
)

log = Table(
    "service_log",
    tables,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("time", Float, nullable=False),
    Column("by", Text, nullable=False),
    Column("what", Text, nullable=False),
    Column("about", Text, nullable=False),
)

SERVICE = KeptTables(
    tables,
    version,
    name="the service's database",
    policy_field="service.database",
    program="service",
)
