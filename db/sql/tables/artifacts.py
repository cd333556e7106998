"""Artifacts of devices that only run, and the builds that make them."""

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from .base import metadata

artifacts = Table(
    "artifacts",
    metadata,
    Column("sha256", String, primary_key=True),
    Column("size", BigInteger, nullable=False),
    Column("data", LargeBinary, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("used_at", Double, nullable=False),
    Index("ix_artifacts_used", "used_at"),
)

builds = Table(
    "builds",
    metadata,
    Column("id", String, primary_key=True),
    Column("kind", String, nullable=False),  # program data
    Column("subject", String, nullable=False),  # a program's candidate key, the workload of data
    Column("seed", BigInteger, nullable=False),  # of data; 0 of a program
    Column("state", String, nullable=False),  # started lost done failed
    Column("attempt", Integer, nullable=False),
    Column("losses", Integer, nullable=False),
    Column("builder", String, nullable=False),
    Column("expires_at", Double, nullable=False),
    Column("artifact", String, ForeignKey("artifacts.sha256")),
    Column("failure_kind", String),
    Column("failure_message", Text, nullable=False),
    Column("failure_detail", Text, nullable=False),
    Column("build_seconds", Double, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("ended_at", Double),
    UniqueConstraint("kind", "subject", "seed"),
    Index("ix_builds_state", "state", "expires_at"),
    Index("ix_builds_artifact", "artifact"),
)
