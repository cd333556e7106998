"""Best-known schedules: what stands, what people have fixed, and what was decided."""

from sqlalchemy import BigInteger, Boolean, Column, Double, ForeignKey, Index, String, Table, Text

from .base import Counter, index_known, metadata

schedules = Table(
    "schedules",
    metadata,
    Column("workload", String, ForeignKey("workloads.key"), primary_key=True),
    Column("target", String, ForeignKey("targets.key"), primary_key=True),
    Column("hardware", String, ForeignKey("hardware.key"), primary_key=True),
    Column("trial", String, ForeignKey("trials.id"), nullable=False, unique=True),
    Column("seconds", Double, nullable=False),
    Column("updated_at", Double, nullable=False),
    Column("challenger", String),  # a trial of another job that read faster and was not timed against it yet
    Column("challenger_seconds", Double),
    Column("confirmed_by", String),  # the other worker on which it was checked and timed, too
    Column("confirmed_seconds", Double),
    Column("confirmed_at", Double),
    Index("ix_schedules_hardware", "hardware", "updated_at"),
    Index("ix_schedules_updated", "updated_at"),
)
index_known("ix_schedules_challenger", schedules.c.challenger)

retirements = Table(
    "retirements",
    metadata,
    Column("candidate_key", String, primary_key=True),
    Column("hardware", String, ForeignKey("hardware.key"), primary_key=True),
    Column("trial", String, ForeignKey("trials.id"), nullable=False),
    Column("reason", Text, nullable=False),
    Column("retired_at", Double, nullable=False),
    Index("ix_retirements_trial", "trial"),
)

baselines = Table(
    "baselines",
    metadata,
    Column("workload", String, ForeignKey("workloads.key"), primary_key=True),
    Column("target", String, ForeignKey("targets.key"), primary_key=True),
    Column("hardware", String, ForeignKey("hardware.key"), primary_key=True),
    Column("trial", String, ForeignKey("trials.id"), nullable=False),  # of the default schedule
    Column("number", BigInteger, nullable=False),  # the lowest of its job is what a build would take
    Column("seconds", Double, nullable=False),
    Column("bound", Boolean(create_constraint=False), nullable=False),  # it takes longer than that
    Index("ix_baselines_trial", "trial"),
)

pins = Table(
    "pins",
    metadata,
    Column("workload", String, ForeignKey("workloads.key"), primary_key=True),
    Column("target", String, ForeignKey("targets.key"), primary_key=True),
    Column("hardware", String, ForeignKey("hardware.key"), primary_key=True),
    Column("trial", String, ForeignKey("trials.id")),  # none: the default schedule is wanted
    Column("note", Text, nullable=False),
    Column("pinned_by", String, nullable=False),
    Column("pinned_at", Double, nullable=False),
)
index_known("ix_pins_trial", pins.c.trial)

freezes = Table(
    "freezes",
    metadata,
    Column("name", String, primary_key=True),
    Column("note", Text, nullable=False),
    Column("frozen_by", String, nullable=False),
    Column("frozen_at", Double, nullable=False),
)

frozen = Table(
    "frozen",
    metadata,
    Column("freeze", String, ForeignKey("freezes.name"), primary_key=True),
    Column("workload", String, ForeignKey("workloads.key"), primary_key=True),
    Column("target", String, ForeignKey("targets.key"), primary_key=True),
    Column("hardware", String, ForeignKey("hardware.key"), primary_key=True),
    Column("trial", String, ForeignKey("trials.id"), nullable=False),
    Index("ix_frozen_trial", "trial"),
)

duels = Table(
    "duels",
    metadata,
    Column("seq", Counter, primary_key=True, autoincrement=True),
    Column("workload", String, ForeignKey("workloads.key"), nullable=False),
    Column("target", String, ForeignKey("targets.key"), nullable=False),
    Column("hardware", String, ForeignKey("hardware.key"), nullable=False),
    Column("job", String, nullable=False),  # whose final rounds they were
    Column("incumbent", String, nullable=False),
    Column("winner", String, nullable=False),
    Column("times", Text, nullable=False),  # of each trial, by its id
    Column("worker", String),  # none: the searching process
    Column("at", Double, nullable=False),
    Index("ix_duels_key", "workload", "target", "hardware", "seq"),
    sqlite_autoincrement=True,
)

imports = Table(
    "imports",
    metadata,
    Column("trial", String, ForeignKey("trials.id"), primary_key=True),
    Column("digest", String, nullable=False, unique=True),
    Column("line", Text, nullable=False),  # as it came
    Column("imported_at", Double, nullable=False),
)
