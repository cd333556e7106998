"""What the HTTP service keeps."""

from sqlalchemy import Column, Double, String, Table, Text

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
)
