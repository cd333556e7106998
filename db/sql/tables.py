"""The tables as this program reads and writes them; migrations/ makes them, and a test compares the two."""

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
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    false,
    text,
)

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)

# SQLite counts up only an INTEGER primary key.
_Counter = BigInteger().with_variant(Integer, "sqlite")

workloads = Table(
    "workloads",
    metadata,
    Column("key", String, primary_key=True),
    Column("name", String, nullable=False),
    Column("program", Text, nullable=False),
    Column("script", Text, nullable=False),
    Column("created_at", Double, nullable=False),
)

structures = Table(
    "structures",
    metadata,
    Column("workload", String, ForeignKey("workloads.key"), primary_key=True),
    Column("structure", String, nullable=False),  # what programs that differ in their extents alone share
    Index("ix_structures_structure", "structure"),
)

targets = Table(
    "targets",
    metadata,
    Column("key", String, primary_key=True),
    Column("description", Text, nullable=False),
    Column("created_at", Double, nullable=False),
)

hardware = Table(
    "hardware",
    metadata,
    Column("key", String, primary_key=True),
    Column("facts", Text, nullable=False),
    Column("created_at", Double, nullable=False),
)

jobs = Table(
    "jobs",
    metadata,
    Column("seq", _Counter, primary_key=True, autoincrement=True),
    Column("id", String, nullable=False, unique=True),
    Column("state", String, nullable=False),
    Column("reason", Text, nullable=False),
    Column("workload", String, ForeignKey("workloads.key"), nullable=False),
    Column("target", String, ForeignKey("targets.key"), nullable=False),
    Column("hardware", String, ForeignKey("hardware.key")),
    Column("trials", BigInteger, nullable=False),
    Column("seconds", Double),
    Column("seed", BigInteger, nullable=False),
    Column("strategy", String, nullable=False),
    Column("worker_wait", Double, nullable=False),
    Column("origin", String, nullable=False),
    Column("spec", Text, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("done", BigInteger, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("started_at", Double),
    Column("waiting_since", Double),
    Column("finished_at", Double),
    Column("active_at", Double, nullable=False),  # the last write of its search: tells a dead local job
    Column("target_seconds", Double),
    Column("patience", BigInteger),
    Column("history", String, nullable=False, server_default=text("'use'")),
    Column("paused_at", Double),
    Column("paused_seconds", Double, nullable=False, server_default=text("0")),
    Column("process", Text, nullable=False, server_default=text("''")),  # who tunes a local job
    Index("ix_jobs_state", "state", "seq"),
    Index("ix_jobs_hardware", "hardware", "state", "seq"),
    Index("ix_jobs_key", "workload", "target", "hardware"),
    sqlite_autoincrement=True,  # pages are by seq: a number must not come back
)

warm_starts = Table(
    "warm_starts",
    metadata,
    Column("job", String, ForeignKey("jobs.id"), primary_key=True),
    Column("snapshot", Text, nullable=False),
    Column("known", BigInteger, nullable=False),
    Column("best", String, ForeignKey("trials.id")),  # the fastest of the known trials, of an earlier job
)

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
    UniqueConstraint("job", "number"),
    UniqueConstraint("job", "candidate_key"),
    CheckConstraint("(outcome IN ('ok', 'censored')) = (seconds IS NOT NULL)", name="success_has_seconds"),
    CheckConstraint("seconds IS NULL OR seconds > 0", name="seconds_positive"),
    Index("ix_trials_outcome", "job", "outcome", "seconds", "number"),
)

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
    Index("ix_attempts_lease", "lease"),
)
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
)

schedules = Table(
    "schedules",
    metadata,
    Column("workload", String, ForeignKey("workloads.key"), primary_key=True),
    Column("target", String, ForeignKey("targets.key"), primary_key=True),
    Column("hardware", String, ForeignKey("hardware.key"), primary_key=True),
    Column("trial", String, ForeignKey("trials.id"), nullable=False, unique=True),
    Column("seconds", Double, nullable=False),
    Column("updated_at", Double, nullable=False),
    Index("ix_schedules_hardware", "hardware", "updated_at"),
    Index("ix_schedules_updated", "updated_at"),
)

retirements = Table(
    "retirements",
    metadata,
    Column("candidate_key", String, primary_key=True),
    Column("hardware", String, ForeignKey("hardware.key"), primary_key=True),
    Column("trial", String, ForeignKey("trials.id"), nullable=False),
    Column("reason", Text, nullable=False),
    Column("retired_at", Double, nullable=False),
)

tokens = Table(
    "tokens",
    metadata,
    Column("seq", _Counter, primary_key=True, autoincrement=True),
    Column("id", String, nullable=False, unique=True),
    Column("name", String, nullable=False),
    Column("secret_sha256", String, nullable=False, unique=True),
    Column("scopes", Text, nullable=False),
    Column("pool", String),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double),
    Column("revoked_at", Double),
)

events = Table(
    "events",
    metadata,
    Column("job", String, ForeignKey("jobs.id"), primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", String, nullable=False),
    Column("data", Text, nullable=False),
    Column("at", Double, nullable=False),
)
