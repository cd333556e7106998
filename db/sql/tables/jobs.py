"""Jobs, what their searches began with, and their events."""

from sqlalchemy import BigInteger, Column, Double, ForeignKey, Index, Integer, String, Table, Text, text

from .base import Counter, index_known, metadata

jobs = Table(
    "jobs",
    metadata,
    Column("seq", Counter, primary_key=True, autoincrement=True),
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
    Column("owner", String),  # the token that made it; none: nobody in particular
    Column("trace_id", String, nullable=False, server_default=text("''")),  # of the request that made it
    Column("pool", String),  # whose workers alone measure it
    Column("labels", Text, nullable=False, server_default=text("'{}'")),
    Column("priority", Integer, nullable=False, server_default=text("0")),
    Column("account", String, nullable=False, server_default=text("''")),  # whose share its trials count to
    Column("began", Double, nullable=False, server_default=text("0")),  # its share before the last grant
    Column("share", Double, nullable=False, server_default=text("0")),  # trials granted, by its weight
    Index("ix_jobs_state", "state", "seq"),
    Index("ix_jobs_owner", "owner", "state"),
    Index("ix_jobs_hardware", "hardware", "state", "seq"),
    Index("ix_jobs_key", "workload", "target", "hardware"),
    sqlite_autoincrement=True,  # pages are by seq: a number must not come back
)

_measured = text("origin = 'http' AND state IN ('running', 'waiting')")
Index(
    "ix_jobs_turn",
    jobs.c.hardware,
    jobs.c.account,
    jobs.c.share,
    jobs.c.seq,
    sqlite_where=_measured,
    postgresql_where=_measured,
)
_unfinished = text("state IN ('queued', 'waiting', 'running', 'paused')")
Index("ix_jobs_unfinished", jobs.c.state, jobs.c.seq, sqlite_where=_unfinished, postgresql_where=_unfinished)
Index("ix_jobs_began", jobs.c.hardware, jobs.c.account, jobs.c.began)

job_labels = Table(
    "job_labels",
    metadata,
    Column("job", String, ForeignKey("jobs.id"), primary_key=True),
    Column("label", Text, primary_key=True),  # "key=value", which a worker must have to measure it
)

warm_starts = Table(
    "warm_starts",
    metadata,
    Column("job", String, ForeignKey("jobs.id"), primary_key=True),
    Column("snapshot", Text, nullable=False),
    Column("known", BigInteger, nullable=False),
    Column("best", String, ForeignKey("trials.id")),  # the fastest of the known trials, of an earlier job
)
index_known("ix_warm_starts_best", warm_starts.c.best)

events = Table(
    "events",
    metadata,
    Column("job", String, ForeignKey("jobs.id"), primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", String, nullable=False),
    Column("data", Text, nullable=False),
    Column("at", Double, nullable=False),
)
