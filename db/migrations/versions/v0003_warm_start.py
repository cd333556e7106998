"""What searches leave to later ones: structures of programs, warm starts; and trials measured outside."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "structures",
        sa.Column("workload", sa.String(), nullable=False),
        sa.Column("structure", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("workload", name="pk_structures"),
        sa.ForeignKeyConstraint(["workload"], ["workloads.key"], name="fk_structures_workload"),
    )
    op.create_index("ix_structures_structure", "structures", ["structure"])
    op.create_table(
        "warm_starts",
        sa.Column("job", sa.String(), nullable=False),
        sa.Column("snapshot", sa.Text(), nullable=False),
        sa.Column("known", sa.BigInteger(), nullable=False),
        sa.Column("best", sa.String()),
        sa.PrimaryKeyConstraint("job", name="pk_warm_starts"),
        sa.ForeignKeyConstraint(["job"], ["jobs.id"], name="fk_warm_starts_job"),
        sa.ForeignKeyConstraint(["best"], ["trials.id"], name="fk_warm_starts_best"),
    )
    op.create_table(
        "holdings",
        sa.Column("trial", sa.String(), nullable=False),
        sa.Column("job", sa.String(), nullable=False),
        sa.Column("holder", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("trial", name="pk_holdings"),
        sa.ForeignKeyConstraint(["trial"], ["trials.id"], name="fk_holdings_trial"),
        sa.ForeignKeyConstraint(["job"], ["jobs.id"], name="fk_holdings_job"),
    )
    op.create_index("ix_holdings_holder", "holdings", ["job", "holder"])
    op.create_index("ix_schedules_hardware", "schedules", ["hardware", "updated_at"])
    op.create_index("ix_schedules_updated", "schedules", ["updated_at"])


def downgrade() -> None:
    op.drop_index("ix_schedules_updated", "schedules")
    op.drop_index("ix_schedules_hardware", "schedules")
    for table in ("holdings", "warm_starts", "structures"):
        op.drop_table(table)
