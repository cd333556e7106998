"""Workers and their leases."""

from sqlalchemy import Boolean, Column, Double, ForeignKey, Index, Integer, String, Table, Text, false, text

from .base import metadata

workers = Table(
    "workers",
    metadata,
    Column("id", String, primary_key=True),
    Column("name", String, nullable=False, unique=True),
    Column("session", String, nullable=False),
    Column("hardware", String, ForeignKey("hardware.key"), nullable=False),
    Column("protocol", Integer, nullable=False),
    Column("versions", Text, nullable=False),
    Column("labels", Text, nullable=False),
    Column("codegen_version", String, nullable=False),
    Column("pool", String),
    Column("state", String, nullable=False),
    Column("reason", Text, nullable=False),
    Column("registered_at", Double, nullable=False),
    Column("seen_at", Double, nullable=False),
    Column("run_only", Boolean(create_constraint=False), nullable=False, server_default=false()),
)

leases = Table(
    "leases",
    metadata,
    Column("id", String, primary_key=True),
    Column("worker", String, ForeignKey("workers.id"), nullable=False),
    Column("session", String, nullable=False),
    Column("hardware", String, ForeignKey("hardware.key"), nullable=False),
    Column("codegen_version", String, nullable=False),
    Column("ttl", Double, nullable=False),
    Column("granted_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
    Column("closed_at", Double),
    Column("ending", String),  # settled released expired superseded
)
_open = text("closed_at IS NULL")
Index("uq_leases_open", leases.c.worker, unique=True, sqlite_where=_open, postgresql_where=_open)
Index("ix_leases_expiry", leases.c.expires_at, sqlite_where=_open, postgresql_where=_open)
