"""Best-known schedules: default schedules to compare with, duels, confirmations, pins, freezes, imports."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_KEY = ("workload", "target", "hardware")
_KEPT_IN = {"workload": "workloads.key", "target": "targets.key", "hardware": "hardware.key"}


def upgrade() -> None:
    op.add_column("schedules", sa.Column("challenger", sa.String()))
    op.add_column("schedules", sa.Column("challenger_seconds", sa.Double()))
    op.add_column("schedules", sa.Column("confirmed_by", sa.String()))
    op.add_column("schedules", sa.Column("confirmed_seconds", sa.Double()))
    op.add_column("schedules", sa.Column("confirmed_at", sa.Double()))
    op.add_column("retimings", sa.Column("job", sa.String()))
    op.add_column("retimings", sa.Column("device", sa.String()))
    op.create_table(
        "baselines",
        *_key_columns("baselines"),
        sa.Column("trial", sa.String(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("bound", sa.Boolean(create_constraint=False), nullable=False),
        sa.ForeignKeyConstraint(["trial"], ["trials.id"], name="fk_baselines_trial"),
    )
    op.create_table(
        "pins",
        *_key_columns("pins"),
        sa.Column("trial", sa.String()),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("pinned_by", sa.String(), nullable=False),
        sa.Column("pinned_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["trial"], ["trials.id"], name="fk_pins_trial"),
    )
    op.create_table(
        "freezes",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("frozen_by", sa.String(), nullable=False),
        sa.Column("frozen_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_freezes"),
    )
    op.create_table(
        "frozen",
        sa.Column("freeze", sa.String(), nullable=False),
        *(sa.Column(name, sa.String(), nullable=False) for name in _KEY),
        sa.Column("trial", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("freeze", *_KEY, name="pk_frozen"),
        sa.ForeignKeyConstraint(["freeze"], ["freezes.name"], name="fk_frozen_freeze"),
        *_foreign("frozen"),
        sa.ForeignKeyConstraint(["trial"], ["trials.id"], name="fk_frozen_trial"),
    )
    op.create_index("ix_frozen_trial", "frozen", ["trial"])
    op.create_table(
        "duels",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        *(sa.Column(name, sa.String(), nullable=False) for name in _KEY),
        sa.Column("job", sa.String(), nullable=False),
        sa.Column("incumbent", sa.String(), nullable=False),
        sa.Column("winner", sa.String(), nullable=False),
        sa.Column("times", sa.Text(), nullable=False),
        sa.Column("worker", sa.String()),
        sa.Column("at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_duels"),
        *_foreign("duels"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_duels_key", "duels", [*_KEY, "seq"])
    op.create_table(
        "imports",
        sa.Column("trial", sa.String(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("line", sa.Text(), nullable=False),
        sa.Column("imported_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("trial", name="pk_imports"),
        sa.ForeignKeyConstraint(["trial"], ["trials.id"], name="fk_imports_trial"),
        sa.UniqueConstraint("digest", name="uq_imports_digest"),
    )


def downgrade() -> None:
    """Forgets pins, freezes and what was decided between schedules; what is best-known stays.

    An imported record stays as a job of its own, whose origin an older program does not create but reads.
    """
    for table in ("imports", "duels", "frozen", "freezes", "pins", "baselines"):
        op.drop_table(table)
    op.execute("DELETE FROM retimings WHERE job IS NOT NULL")
    op.drop_column("retimings", "device")
    op.drop_column("retimings", "job")
    for column in (
        "confirmed_at",
        "confirmed_seconds",
        "confirmed_by",
        "challenger_seconds",
        "challenger",
    ):
        op.drop_column("schedules", column)


def _key_columns(table: str) -> list[sa.schema.SchemaItem]:
    columns = [sa.Column(name, sa.String(), nullable=False) for name in _KEY]
    return [*columns, sa.PrimaryKeyConstraint(*_KEY, name=f"pk_{table}"), *_foreign(table)]


def _foreign(table: str) -> list[sa.schema.SchemaItem]:
    return [
        sa.ForeignKeyConstraint([name], [kept], name=f"fk_{table}_{name}") for name, kept in _KEPT_IN.items()
    ]
