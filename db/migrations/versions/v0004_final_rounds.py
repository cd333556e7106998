"""Final rounds, in which workers time the fastest trials once more; and how each trial was sampled."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "retimings",
        sa.Column("trial", sa.String(), nullable=False),
        sa.Column("turn", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("place", sa.BigInteger(), nullable=False),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.Column("seconds", sa.Double()),
        sa.Column("samples", sa.Text(), nullable=False),
        sa.Column("worker", sa.String()),
        sa.Column("settled_at", sa.Double()),
        sa.PrimaryKeyConstraint("trial", "turn", name="pk_retimings"),
        sa.ForeignKeyConstraint(["trial"], ["trials.id"], name="fk_retimings_trial"),
        sa.ForeignKeyConstraint(["worker"], ["workers.id"], name="fk_retimings_worker"),
    )
    due = sa.text("outcome = 'pending'")
    op.create_index(
        "uq_retimings_due", "retimings", ["trial"], unique=True, sqlite_where=due, postgresql_where=due
    )
    op.add_column("trials", sa.Column("calls", sa.BigInteger()))
    op.add_column("trials", sa.Column("cache", sa.String()))


def downgrade() -> None:
    """Forgets the final rounds; what they decided stays."""
    op.drop_column("trials", "cache")
    op.drop_column("trials", "calls")
    op.drop_index("uq_retimings_due", "retimings")
    op.drop_table("retimings")
