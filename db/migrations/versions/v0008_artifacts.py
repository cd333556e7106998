"""Objects that builders make for devices that cannot compile."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "artifacts",
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("used_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("sha256", name="pk_artifacts"),
    )
    op.create_index("ix_artifacts_used", "artifacts", ["used_at"])
    op.create_table(
        "builds",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("losses", sa.Integer(), nullable=False),
        sa.Column("builder", sa.String(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.Column("artifact", sa.String()),
        sa.Column("failure_kind", sa.String()),
        sa.Column("failure_message", sa.Text(), nullable=False),
        sa.Column("failure_detail", sa.Text(), nullable=False),
        sa.Column("build_seconds", sa.Double(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("ended_at", sa.Double()),
        sa.PrimaryKeyConstraint("id", name="pk_builds"),
        sa.ForeignKeyConstraint(["artifact"], ["artifacts.sha256"], name="fk_builds_artifact"),
        sa.UniqueConstraint("kind", "subject", "seed", name="uq_builds_kind_subject_seed"),
    )
    op.create_index("ix_builds_state", "builds", ["state", "expires_at"])
    op.create_index("ix_builds_artifact", "builds", ["artifact"])
    op.add_column(
        "workers",
        sa.Column("run_only", sa.Boolean(create_constraint=False), nullable=False, server_default=sa.false()),
    )


def downgrade() -> None:
    """Forgets what was built, which can be built again; devices that only run must attach again."""
    op.drop_column("workers", "run_only")
    op.drop_table("builds")
    op.drop_table("artifacts")
