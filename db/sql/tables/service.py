"""What the HTTP service keeps."""

from sqlalchemy import BigInteger, Column, Double, Index, Integer, String, Table, Text

from .base import Counter, metadata

tokens = Table(
    "tokens",
    metadata,
    Column("seq", Counter, primary_key=True, autoincrement=True),
    Column("id", String, nullable=False, unique=True),
    Column("name", String, nullable=False),
    Column("secret_sha256", String, nullable=False, unique=True),
    Column("scopes", Text, nullable=False),
    Column("pool", String),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double),
    Column("revoked_at", Double),
    Column("max_jobs", BigInteger),  # of what it may have unfinished; none: the server's limit
    Column("max_trials", BigInteger),
    Column("rate", Double),  # requests a second
)

answers = Table(
    "answers",
    metadata,
    Column("key", String, primary_key=True),  # SHA-256 of who asked and the idempotency key
    Column("request", String, nullable=False),  # SHA-256 of what was asked
    Column("status", Integer, nullable=False),
    Column("headers", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
    Index("ix_answers_expiry", "expires_at"),
)

audit = Table(
    "audit",
    metadata,
    Column("seq", Counter, primary_key=True, autoincrement=True),
    Column("at", Double, nullable=False),
    Column("actor", String, nullable=False),  # a token's id, or anonymous, or command line
    Column("name", String, nullable=False),
    Column("address", String, nullable=False),
    Column("verb", String, nullable=False),
    Column("subject", String, nullable=False),
    Column("outcome", String, nullable=False),  # done, or the code of the problem
    Column("trace_id", String, nullable=False),
    Index("ix_audit_actor", "actor", "seq"),
    sqlite_autoincrement=True,  # pages are by seq: a number must not come back
)
