"""What runs the fleet: pauses, pools, priorities, and what is done to workers."""

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    pass


def downgrade() -> None:
    pass
