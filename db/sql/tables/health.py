"""How well workers are, and how steady they were in each job."""

from sqlalchemy import BigInteger, Boolean, Column, Double, ForeignKey, Index, String, Table, Text

from .base import Counter, metadata

health_checks = Table(
    "health_checks",
    metadata,
    Column("seq", Counter, primary_key=True, autoincrement=True),
    Column("worker", String, ForeignKey("workers.id"), nullable=False),
    Column("at", Double, nullable=False),
    Column("occasion", String, nullable=False),  # attach periodic after_error quarantined
    Column("verdict", String, nullable=False),  # healthy suspect failed drifted dispersed
    Column("parts", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Index("ix_health_checks_worker", "worker", "verdict", "seq"),
    sqlite_autoincrement=True,
)

job_baselines = Table(
    "job_baselines",
    metadata,
    Column("job", String, ForeignKey("jobs.id"), primary_key=True),
    Column("worker", String, ForeignKey("workers.id"), primary_key=True),
    Column("first_seconds", Double, nullable=False),
    Column("last_seconds", Double, nullable=False),
    Column("readings", BigInteger, nullable=False),
    Column("drifted", Boolean(create_constraint=False), nullable=False),
)
