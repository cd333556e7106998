"""Workloads, targets and kinds of hardware."""

from sqlalchemy import Column, Double, ForeignKey, Index, String, Table, Text

from .base import metadata

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
