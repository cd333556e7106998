"""Trials, and every attempt to measure one."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
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
    false,
    text,
)

from .base import index_known, metadata

trials = Table(
    "trials",
    metadata,
    Column("id", String, primary_key=True),
    Column("job", String, ForeignKey("jobs.id"), nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("batch", BigInteger, nullable=False),
    Column("candidate_key", String, nullable=False),
    Column("sketch", String, nullable=False),
    Column("trace", Text, nullable=False),
    Column("features", LargeBinary, nullable=False),
    Column("feature_schema", BigInteger, nullable=False),
    Column("input_seed", BigInteger, nullable=False),
    Column("outcome", String, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("lease", String, ForeignKey("leases.id")),  # who holds it now
    Column("seconds", Double),
    Column("samples", Text, nullable=False),
    Column("censored", Boolean(create_constraint=False), nullable=False),
    Column("error", Double),
    Column("failure_kind", String),
    Column("failure_message", Text, nullable=False),
    Column("failure_detail", Text, nullable=False),
    Column("build_seconds", Double, nullable=False),
    Column("wall_seconds", Double, nullable=False),
    Column("codegen_version", String),
    Column("worker", String, ForeignKey("workers.id")),
    Column("created_at", Double, nullable=False),
    Column("started_at", Double),
    Column("settled_at", Double),
    Column("predicted", Double),
    Column("origin", String, nullable=False, server_default=text("''")),
    Column("disturbed", Boolean(create_constraint=False), nullable=False, server_default=false()),
    Column("first_seconds", Double),  # what the search was told, of a trial that was timed again since
    Column("first_samples", Text),
    Column("calls", BigInteger),  # in each sample
    Column("cache", String),  # hot
    Column("baseline_before", Double),  # seconds of the baseline kernel around the first timing
    Column("baseline_after", Double),
    Column("baseline_ratio", Double),  # seconds of the first timing, in units of the mean of these
    Column("disturbance", Text, nullable=False, server_default=text("''")),
    UniqueConstraint("job", "number"),
    UniqueConstraint("job", "candidate_key"),
    CheckConstraint("(outcome IN ('ok', 'censored')) = (seconds IS NOT NULL)", name="success_has_seconds"),
    CheckConstraint("seconds IS NULL OR seconds > 0", name="seconds_positive"),
    Index("ix_trials_outcome", "job", "outcome", "seconds", "number"),
)
index_known("ix_trials_lease", trials.c.lease)

retimings = Table(
    "retimings",
    metadata,
    Column("trial", String, ForeignKey("trials.id"), primary_key=True),
    Column("turn", BigInteger, primary_key=True, autoincrement=False),
    Column("place", BigInteger, nullable=False),  # within the turn
    Column("outcome", String, nullable=False),  # pending ok cancelled, or a failure kind
    Column("seconds", Double),
    Column("samples", Text, nullable=False),
    Column("worker", String, ForeignKey("workers.id")),
    Column("settled_at", Double),
    Column("job", String),  # which wants it, where that is not the trial's own; its turns are below 0 then
    Column("device", String),  # the worker that is to time it; none: any
)
_due = text("outcome = 'pending'")
Index("uq_retimings_due", retimings.c.trial, unique=True, sqlite_where=_due, postgresql_where=_due)

attempts = Table(
    "attempts",
    metadata,
    Column("trial", String, ForeignKey("trials.id"), primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("lease", String, ForeignKey("leases.id")),  # none: measured by the searching process
    Column("worker", String, ForeignKey("workers.id")),
    Column("state", String, nullable=False),  # granted started ran settled lost returned
    Column("digest", String),  # SHA-256 of the settlement: tells a repeated one from another
    Column("granted_at", Double, nullable=False),
    Column("started_at", Double),
    Column("ended_at", Double),
)
index_known("ix_attempts_lease", attempts.c.lease)
_running = text("state = 'started'")
Index("uq_attempts_running", attempts.c.worker, unique=True, sqlite_where=_running, postgresql_where=_running)

holdings = Table(
    "holdings",
    metadata,
    Column("trial", String, ForeignKey("trials.id"), primary_key=True),
    Column("job", String, ForeignKey("jobs.id"), nullable=False),
    Column("holder", String, nullable=False),  # who measures it outside of the fleet
    Index("ix_holdings_holder", "job", "holder"),
)

crashes = Table(
    "crashes",
    metadata,
    Column("candidate_key", String, primary_key=True),
    Column("hardware", String, ForeignKey("hardware.key"), primary_key=True),
    Column("losses", Integer, nullable=False),
    Column("last_at", Double, nullable=False),
    Column("trial", String),  # that ran when the last one was lost
)
