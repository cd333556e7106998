"""Workers and their leases."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    Text,
    false,
    text,
)

from .base import Counter, metadata

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
    Column("state_at", Double),  # since when it is in its state
    Column("until", Double),  # when its pause ends
    Column("settled", BigInteger, nullable=False, server_default=text("0")),  # results taken from it
    Column("failed", BigInteger, nullable=False, server_default=text("0")),  # failures among them
    Column("facts", Text, nullable=False, server_default=text("'{}'")),
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
Index("ix_leases_worker", leases.c.worker, leases.c.granted_at)

doubts = Table(
    "doubts",
    metadata,
    Column("seq", Counter, primary_key=True, autoincrement=True),
    Column("worker", String, ForeignKey("workers.id"), nullable=False),
    Column("since", Double, nullable=False),  # what it settled from then on is not believed
    Column("until", Double),  # none: nor what it will settle
    Column("reason", Text, nullable=False),
    Column("made_at", Double, nullable=False),
    Index("ix_doubts_worker", "worker", "since"),
)

shares = Table(
    "shares",
    metadata,
    Column("hardware", String, ForeignKey("hardware.key"), primary_key=True),
    Column("account", String, primary_key=True),
    Column("began", Double, nullable=False),  # its share before the last grant
    Column("share", Double, nullable=False),  # trials granted to its jobs, and to others while it had none
    Index("ix_shares_turn", "hardware", "share", "account"),
)
