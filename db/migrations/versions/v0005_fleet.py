"""What runs the fleet: pauses, pools, labels, priorities, shares, and results that are not believed."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

# SQLite counts up only an INTEGER primary key.
_COUNTER = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_ZERO = sa.text("0")
_MEASURED = sa.text("origin = 'http' AND state IN ('running', 'waiting')")


def _columns() -> dict[str, tuple[sa.Column[Any], ...]]:
    return {
        "workers": (
            sa.Column("state_at", sa.Double()),
            sa.Column("until", sa.Double()),
            sa.Column("settled", sa.BigInteger(), nullable=False, server_default=_ZERO),
            sa.Column("failed", sa.BigInteger(), nullable=False, server_default=_ZERO),
        ),
        "jobs": (
            sa.Column("pool", sa.String()),
            sa.Column("labels", sa.Text(), nullable=False, server_default=sa.text("'{}'")),
            sa.Column("priority", sa.Integer(), nullable=False, server_default=_ZERO),
            sa.Column("account", sa.String(), nullable=False, server_default=sa.text("''")),
            sa.Column("began", sa.Double(), nullable=False, server_default=_ZERO),
            sa.Column("share", sa.Double(), nullable=False, server_default=_ZERO),
        ),
        "crashes": (sa.Column("trial", sa.String()),),
    }


def upgrade() -> None:
    for table, columns in _columns().items():
        for column in columns:
            op.add_column(table, column)
    op.create_index(
        "ix_jobs_turn",
        "jobs",
        ["hardware", "account", "share", "seq"],
        sqlite_where=_MEASURED,
        postgresql_where=_MEASURED,
    )
    op.create_index("ix_jobs_began", "jobs", ["hardware", "account", "began"])
    op.create_index("ix_leases_worker", "leases", ["worker", "granted_at"])
    op.create_table(
        "job_labels",
        sa.Column("job", sa.String(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("job", "label", name="pk_job_labels"),
        sa.ForeignKeyConstraint(["job"], ["jobs.id"], name="fk_job_labels_job"),
    )
    op.create_table(
        "shares",
        sa.Column("hardware", sa.String(), nullable=False),
        sa.Column("account", sa.String(), nullable=False),
        sa.Column("began", sa.Double(), nullable=False),
        sa.Column("share", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("hardware", "account", name="pk_shares"),
        sa.ForeignKeyConstraint(["hardware"], ["hardware.key"], name="fk_shares_hardware"),
    )
    # Jobs that are there already have nobody's account.
    op.execute(
        "INSERT INTO shares (hardware, account, began, share) "
        "SELECT DISTINCT hardware, '', 0, 0 FROM jobs WHERE hardware IS NOT NULL"
    )
    op.create_index("ix_shares_turn", "shares", ["hardware", "share", "account"])
    op.create_table(
        "doubts",
        sa.Column("seq", _COUNTER, nullable=False, autoincrement=True),
        sa.Column("worker", sa.String(), nullable=False),
        sa.Column("since", sa.Double(), nullable=False),
        sa.Column("until", sa.Double()),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("made_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_doubts"),
        sa.ForeignKeyConstraint(["worker"], ["workers.id"], name="fk_doubts_worker"),
    )
    op.create_index("ix_doubts_worker", "doubts", ["worker", "since"])


def downgrade() -> None:
    """Forgets these columns and tables. A paused worker stays paused, which the older schema knows as well;
    what was not believed is not best-known again until a result asks for it."""
    for index, table in (
        ("ix_doubts_worker", "doubts"),
        ("ix_shares_turn", "shares"),
        ("ix_leases_worker", "leases"),
        ("ix_jobs_began", "jobs"),
        ("ix_jobs_turn", "jobs"),
    ):
        op.drop_index(index, table)
    for table in ("doubts", "shares", "job_labels"):
        op.drop_table(table)
    for table, columns in _columns().items():
        for column in columns:
            op.drop_column(table, column.name)
