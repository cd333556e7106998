"""What the service keeps of requests: idempotency keys, owners and quotas, an audit log."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


# SQLite counts up only an INTEGER primary key.
COUNTER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.add_column("jobs", sa.Column("owner", sa.String()))
    op.add_column("jobs", sa.Column("trace_id", sa.String(), nullable=False, server_default=sa.text("''")))
    op.create_index("ix_jobs_owner", "jobs", ["owner", "state"])
    op.add_column("tokens", sa.Column("max_jobs", sa.BigInteger()))
    op.add_column("tokens", sa.Column("max_trials", sa.BigInteger()))
    op.add_column("tokens", sa.Column("rate", sa.Double()))
    op.create_table(
        "answers",
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("request", sa.String(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("headers", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_answers"),
    )
    op.create_index("ix_answers_expiry", "answers", ["expires_at"])
    op.create_table(
        "audit",
        sa.Column("seq", COUNTER, nullable=False, autoincrement=True),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("address", sa.String(), nullable=False),
        sa.Column("verb", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.Column("trace_id", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_audit"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_audit_actor", "audit", ["actor", "seq"])


def downgrade() -> None:
    """Forgets who made what, and the answers that were kept."""
    op.drop_index("ix_audit_actor", "audit")
    op.drop_table("audit")
    op.drop_index("ix_answers_expiry", "answers")
    op.drop_table("answers")
    for column in ("rate", "max_trials", "max_jobs"):
        op.drop_column("tokens", column)
    op.drop_index("ix_jobs_owner", "jobs")
    op.drop_column("jobs", "trace_id")
    op.drop_column("jobs", "owner")
