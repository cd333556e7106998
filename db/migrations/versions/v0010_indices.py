"""Indices by which a row finds what refers to it, so that nothing reads whole tables to forget it; one of the
jobs that are not over; and one of attempts' leases without those that have none."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

# Each index, its table and its column; most rows of the first have nothing there.
_OF_SOME = (
    ("ix_trials_lease", "trials", "lease"),
    ("ix_schedules_challenger", "schedules", "challenger"),
    ("ix_warm_starts_best", "warm_starts", "best"),
    ("ix_pins_trial", "pins", "trial"),
)
_OF_ALL = (
    ("ix_baselines_trial", "baselines", "trial"),
    ("ix_retirements_trial", "retirements", "trial"),
)
_UNFINISHED = sa.text("state IN ('queued', 'waiting', 'running', 'paused')")


def upgrade() -> None:
    for name, table, column in _OF_SOME:
        _index_some(name, table, column)
    for name, table, column in _OF_ALL:
        op.create_index(name, table, [column])
    op.create_index(
        "ix_jobs_unfinished",
        "jobs",
        ["state", "seq"],
        sqlite_where=_UNFINISHED,
        postgresql_where=_UNFINISHED,
    )
    op.drop_index("ix_attempts_lease", "attempts")
    _index_some("ix_attempts_lease", "attempts", "lease")


def downgrade() -> None:
    op.drop_index("ix_attempts_lease", "attempts")
    op.create_index("ix_attempts_lease", "attempts", ["lease"])
    op.drop_index("ix_jobs_unfinished", "jobs")
    for name, table, _ in (*_OF_ALL, *_OF_SOME):
        op.drop_index(name, table)


def _index_some(name: str, table: str, column: str) -> None:
    known = sa.text(f"{column} IS NOT NULL")
    op.create_index(name, table, [column], sqlite_where=known, postgresql_where=known)
