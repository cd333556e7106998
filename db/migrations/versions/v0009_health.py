"""Golden kernels and what they showed of each worker; baselines around each trial."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

# SQLite counts up only an INTEGER primary key.
_COUNTER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def _columns() -> dict[str, tuple[sa.Column[Any], ...]]:
    return {
        "trials": (
            sa.Column("baseline_before", sa.Double()),
            sa.Column("baseline_after", sa.Double()),
            sa.Column("baseline_ratio", sa.Double()),
            sa.Column("disturbance", sa.Text(), nullable=False, server_default=sa.text("''")),
        ),
        "workers": (sa.Column("facts", sa.Text(), nullable=False, server_default=sa.text("'{}'")),),
    }


def upgrade() -> None:
    for table, columns in _columns().items():
        for column in columns:
            op.add_column(table, column)
    op.create_table(
        "health_checks",
        sa.Column("seq", _COUNTER, nullable=False, autoincrement=True),
        sa.Column("worker", sa.String(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("occasion", sa.String(), nullable=False),
        sa.Column("verdict", sa.String(), nullable=False),
        sa.Column("parts", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_health_checks"),
        sa.ForeignKeyConstraint(["worker"], ["workers.id"], name="fk_health_checks_worker"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_health_checks_worker", "health_checks", ["worker", "verdict", "seq"])
    op.create_table(
        "job_baselines",
        sa.Column("job", sa.String(), nullable=False),
        sa.Column("worker", sa.String(), nullable=False),
        sa.Column("first_seconds", sa.Double(), nullable=False),
        sa.Column("last_seconds", sa.Double(), nullable=False),
        sa.Column("readings", sa.BigInteger(), nullable=False),
        sa.Column("drifted", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("job", "worker", name="pk_job_baselines"),
        sa.ForeignKeyConstraint(["job"], ["jobs.id"], name="fk_job_baselines_job"),
        sa.ForeignKeyConstraint(["worker"], ["workers.id"], name="fk_job_baselines_worker"),
    )


def downgrade() -> None:
    """Forgets checks and baselines. A worker that was quarantined by its health stays so, which the older
    schema knows as well."""
    op.drop_table("job_baselines")
    op.drop_index("ix_health_checks_worker", "health_checks")
    op.drop_table("health_checks")
    for table, columns in _columns().items():
        for column in columns:
            op.drop_column(table, column.name)
