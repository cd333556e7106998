"""Budgets with a target and patience, pauses, whose process tunes, and how a trial came about."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_EMPTY = sa.text("''")


def _columns() -> dict[str, tuple[sa.Column[Any], ...]]:
    return {
        "jobs": (
            sa.Column("target_seconds", sa.Double()),
            sa.Column("patience", sa.BigInteger()),
            sa.Column("history", sa.String(), nullable=False, server_default=sa.text("'use'")),
            sa.Column("paused_at", sa.Double()),
            sa.Column("paused_seconds", sa.Double(), nullable=False, server_default=sa.text("0")),
            sa.Column("process", sa.Text(), nullable=False, server_default=_EMPTY),
        ),
        "trials": (
            sa.Column("predicted", sa.Double()),
            sa.Column("origin", sa.String(), nullable=False, server_default=_EMPTY),
            sa.Column("disturbed", sa.Boolean(), nullable=False, server_default=sa.false()),
            sa.Column("first_seconds", sa.Double()),
            sa.Column("first_samples", sa.Text()),
        ),
    }


def upgrade() -> None:
    for table, columns in _columns().items():
        for column in columns:
            op.add_column(table, column)


def downgrade() -> None:
    """Forgets these columns. A paused job stays paused, which the older schema knows as well."""
    for table, columns in _columns().items():
        for column in columns:
            op.drop_column(table, column.name)
