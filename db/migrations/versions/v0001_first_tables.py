"""The first schema: the catalog, jobs, the fleet, trials and best-known schedules."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_COUNTER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_OPEN = sa.text("closed_at IS NULL")
_RUNNING = sa.text("state = 'started'")
_TABLES = (
    "retirements",
    "schedules",
    "attempts",
    "trials",
    "crashes",
    "leases",
    "workers",
    "events",
    "jobs",
    "tokens",
    "hardware",
    "targets",
    "workloads",
)


def upgrade() -> None:
    _catalog()
    _jobs()
    _fleet()
    _trials()
    _schedules()


def downgrade() -> None:
    for table in _TABLES:
        op.drop_table(table)


def _catalog() -> None:
    op.create_table(
        "workloads",
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("program", sa.Text(), nullable=False),
        sa.Column("script", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_workloads"),
    )
    op.create_table(
        "targets",
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_targets"),
    )
    op.create_table(
        "hardware",
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("facts", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_hardware"),
    )
    op.create_table(
        "tokens",
        sa.Column("seq", _COUNTER, autoincrement=True, nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("secret_sha256", sa.String(), nullable=False),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("pool", sa.String()),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double()),
        sa.Column("revoked_at", sa.Double()),
        sa.PrimaryKeyConstraint("seq", name="pk_tokens"),
        sa.UniqueConstraint("id", name="uq_tokens_id"),
        sa.UniqueConstraint("secret_sha256", name="uq_tokens_secret_sha256"),
    )


def _jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("seq", _COUNTER, autoincrement=True, nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("workload", sa.String(), nullable=False),
        sa.Column("target", sa.String(), nullable=False),
        sa.Column("hardware", sa.String()),
        sa.Column("trials", sa.BigInteger(), nullable=False),
        sa.Column("seconds", sa.Double()),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("strategy", sa.String(), nullable=False),
        sa.Column("worker_wait", sa.Double(), nullable=False),
        sa.Column("origin", sa.String(), nullable=False),
        sa.Column("spec", sa.Text(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("done", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("started_at", sa.Double()),
        sa.Column("waiting_since", sa.Double()),
        sa.Column("finished_at", sa.Double()),
        sa.Column("active_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["hardware"], ["hardware.key"], name="fk_jobs_hardware"),
        sa.ForeignKeyConstraint(["target"], ["targets.key"], name="fk_jobs_target"),
        sa.ForeignKeyConstraint(["workload"], ["workloads.key"], name="fk_jobs_workload"),
        sa.PrimaryKeyConstraint("seq", name="pk_jobs"),
        sa.UniqueConstraint("id", name="uq_jobs_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_jobs_hardware", "jobs", ["hardware", "state", "seq"])
    op.create_index("ix_jobs_key", "jobs", ["workload", "target", "hardware"])
    op.create_index("ix_jobs_state", "jobs", ["state", "seq"])
    op.create_table(
        "events",
        sa.Column("job", sa.String(), nullable=False),
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["job"], ["jobs.id"], name="fk_events_job"),
        sa.PrimaryKeyConstraint("job", "seq", name="pk_events"),
    )


def _fleet() -> None:
    op.create_table(
        "workers",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("session", sa.String(), nullable=False),
        sa.Column("hardware", sa.String(), nullable=False),
        sa.Column("protocol", sa.Integer(), nullable=False),
        sa.Column("versions", sa.Text(), nullable=False),
        sa.Column("labels", sa.Text(), nullable=False),
        sa.Column("codegen_version", sa.String(), nullable=False),
        sa.Column("pool", sa.String()),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("registered_at", sa.Double(), nullable=False),
        sa.Column("seen_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["hardware"], ["hardware.key"], name="fk_workers_hardware"),
        sa.PrimaryKeyConstraint("id", name="pk_workers"),
        sa.UniqueConstraint("name", name="uq_workers_name"),
    )
    op.create_table(
        "leases",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("worker", sa.String(), nullable=False),
        sa.Column("session", sa.String(), nullable=False),
        sa.Column("hardware", sa.String(), nullable=False),
        sa.Column("codegen_version", sa.String(), nullable=False),
        sa.Column("ttl", sa.Double(), nullable=False),
        sa.Column("granted_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.Column("closed_at", sa.Double()),
        sa.Column("ending", sa.String()),
        sa.ForeignKeyConstraint(["hardware"], ["hardware.key"], name="fk_leases_hardware"),
        sa.ForeignKeyConstraint(["worker"], ["workers.id"], name="fk_leases_worker"),
        sa.PrimaryKeyConstraint("id", name="pk_leases"),
    )
    op.create_index("ix_leases_expiry", "leases", ["expires_at"], sqlite_where=_OPEN, postgresql_where=_OPEN)
    op.create_index(
        "uq_leases_open", "leases", ["worker"], unique=True, sqlite_where=_OPEN, postgresql_where=_OPEN
    )
    op.create_table(
        "crashes",
        sa.Column("candidate_key", sa.String(), nullable=False),
        sa.Column("hardware", sa.String(), nullable=False),
        sa.Column("losses", sa.Integer(), nullable=False),
        sa.Column("last_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["hardware"], ["hardware.key"], name="fk_crashes_hardware"),
        sa.PrimaryKeyConstraint("candidate_key", "hardware", name="pk_crashes"),
    )


def _trials() -> None:
    op.create_table(
        "trials",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("job", sa.String(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("batch", sa.BigInteger(), nullable=False),
        sa.Column("candidate_key", sa.String(), nullable=False),
        sa.Column("sketch", sa.String(), nullable=False),
        sa.Column("trace", sa.Text(), nullable=False),
        sa.Column("features", sa.LargeBinary(), nullable=False),
        sa.Column("feature_schema", sa.BigInteger(), nullable=False),
        sa.Column("input_seed", sa.BigInteger(), nullable=False),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("lease", sa.String()),
        sa.Column("seconds", sa.Double()),
        sa.Column("samples", sa.Text(), nullable=False),
        sa.Column("censored", sa.Boolean(), nullable=False),
        sa.Column("error", sa.Double()),
        sa.Column("failure_kind", sa.String()),
        sa.Column("failure_message", sa.Text(), nullable=False),
        sa.Column("failure_detail", sa.Text(), nullable=False),
        sa.Column("build_seconds", sa.Double(), nullable=False),
        sa.Column("wall_seconds", sa.Double(), nullable=False),
        sa.Column("codegen_version", sa.String()),
        sa.Column("worker", sa.String()),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("started_at", sa.Double()),
        sa.Column("settled_at", sa.Double()),
        sa.CheckConstraint(
            "(outcome IN ('ok', 'censored')) = (seconds IS NOT NULL)", name="ck_trials_success_has_seconds"
        ),
        sa.CheckConstraint("seconds IS NULL OR seconds > 0", name="ck_trials_seconds_positive"),
        sa.ForeignKeyConstraint(["job"], ["jobs.id"], name="fk_trials_job"),
        sa.ForeignKeyConstraint(["lease"], ["leases.id"], name="fk_trials_lease"),
        sa.ForeignKeyConstraint(["worker"], ["workers.id"], name="fk_trials_worker"),
        sa.PrimaryKeyConstraint("id", name="pk_trials"),
        sa.UniqueConstraint("job", "candidate_key", name="uq_trials_job_candidate_key"),
        sa.UniqueConstraint("job", "number", name="uq_trials_job_number"),
    )
    op.create_index("ix_trials_outcome", "trials", ["job", "outcome", "seconds", "number"])
    op.create_table(
        "attempts",
        sa.Column("trial", sa.String(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("lease", sa.String()),
        sa.Column("worker", sa.String()),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("digest", sa.String()),
        sa.Column("granted_at", sa.Double(), nullable=False),
        sa.Column("started_at", sa.Double()),
        sa.Column("ended_at", sa.Double()),
        sa.ForeignKeyConstraint(["lease"], ["leases.id"], name="fk_attempts_lease"),
        sa.ForeignKeyConstraint(["trial"], ["trials.id"], name="fk_attempts_trial"),
        sa.ForeignKeyConstraint(["worker"], ["workers.id"], name="fk_attempts_worker"),
        sa.PrimaryKeyConstraint("trial", "attempt", name="pk_attempts"),
    )
    op.create_index("ix_attempts_lease", "attempts", ["lease"])
    op.create_index(
        "uq_attempts_running",
        "attempts",
        ["worker"],
        unique=True,
        sqlite_where=_RUNNING,
        postgresql_where=_RUNNING,
    )


def _schedules() -> None:
    op.create_table(
        "schedules",
        sa.Column("workload", sa.String(), nullable=False),
        sa.Column("target", sa.String(), nullable=False),
        sa.Column("hardware", sa.String(), nullable=False),
        sa.Column("trial", sa.String(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["hardware"], ["hardware.key"], name="fk_schedules_hardware"),
        sa.ForeignKeyConstraint(["target"], ["targets.key"], name="fk_schedules_target"),
        sa.ForeignKeyConstraint(["trial"], ["trials.id"], name="fk_schedules_trial"),
        sa.ForeignKeyConstraint(["workload"], ["workloads.key"], name="fk_schedules_workload"),
        sa.PrimaryKeyConstraint("workload", "target", "hardware", name="pk_schedules"),
        sa.UniqueConstraint("trial", name="uq_schedules_trial"),
    )
    op.create_table(
        "retirements",
        sa.Column("candidate_key", sa.String(), nullable=False),
        sa.Column("hardware", sa.String(), nullable=False),
        sa.Column("trial", sa.String(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("retired_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["hardware"], ["hardware.key"], name="fk_retirements_hardware"),
        sa.ForeignKeyConstraint(["trial"], ["trials.id"], name="fk_retirements_trial"),
        sa.PrimaryKeyConstraint("candidate_key", "hardware", name="pk_retirements"),
    )
