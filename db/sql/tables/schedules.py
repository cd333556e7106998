"""Best-known schedules."""

from sqlalchemy import Column, Double, ForeignKey, Index, String, Table, Text

from .base import metadata

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
