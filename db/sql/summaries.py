"""What jobs have come to, read for a page of them at once."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, ScalarSelect, and_, bindparam, case, func, select

from ..checks import check_seconds
from ..fleet_records import Stall
from ..health_records import WorkerBaseline
from ..records import Known, Trial
from ..summary_records import JobSummary, ResultDoubt
from ..words import FINAL_JOB_STATES
from .belief import is_doubted
from .best_rows import same_key
from .clock import epoch_now
from .health import baselines_query
from .part import Part
from .tables import attempts, doubts, events, jobs, schedules, trials, warm_starts, workers
from .trial_rows import TRIAL_COLUMNS, counts_of, trial_of

Doubts = dict[str, list[ResultDoubt]]


class SummaryPart(Part):
    def job_summaries(self, job_ids: Sequence[str], silence: float) -> dict[str, JobSummary]:
        check_seconds("silence", silence)
        with self._database.read() as conn:
            rows = conn.execute(_SUMMARIES, {"ids": list(job_ids), "silence": silence}).all()
            ids = [row.id for row in rows]
            counts = counts_of(conn, ids)
            shown = _trials(conn, {each for row in rows for each in (row.own, row.best) if each is not None})
            waited = _waited(conn, {row.oldest for row in rows if row.oldest is not None})
            baselines = _baselines(conn, ids)
            doubted = _doubts(conn, ids) if any(row.anybody_doubted for row in rows) else {}
        return {
            row.id: JobSummary(
                at=row.now,
                report=row.report,
                model=row.model,
                counts=counts[row.id],
                best=shown.get(row.own),
                known=Known(row.known or 0, row.best),
                known_best=shown.get(row.best),
                first_started_at=row.first_started_at,
                baselines=tuple(baselines.get(row.id, ())),
                doubts=tuple(doubted.get(row.id, ())),
                stall=_stall(row, waited),
            )
            for row in rows
        }


def _last(kind: str) -> ScalarSelect[Any]:
    of_kind = events.c.job == jobs.c.id, events.c.kind == kind
    return select(events.c.data).where(*of_kind).order_by(events.c.seq.desc()).limit(1).scalar_subquery()


def _own() -> ColumnElement[Any]:
    """The trial that a job is known by; what follows in a COALESCE is looked for only if need be."""
    holder = trials.alias("holder")
    standing = (
        select(schedules.c.trial)
        .join(holder, holder.c.id == schedules.c.trial)
        .where(same_key(schedules, jobs), holder.c.job == jobs.c.id)
    )
    by_time = trials.c.seconds, trials.c.number
    of_job = select(trials.c.id).where(trials.c.job == jobs.c.id, ~is_doubted()).order_by(*by_time).limit(1)
    crowned = of_job.where(trials.c.first_seconds.is_not(None))
    over = jobs.c.state.in_(FINAL_JOB_STATES) & jobs.c.hardware.is_not(None)
    winner = case((over, func.coalesce(standing.scalar_subquery(), crowned.scalar_subquery())))
    return func.coalesce(winner, of_job.where(trials.c.outcome == "ok").scalar_subquery())


def _first_started_at() -> ScalarSelect[Any]:
    of_job = select(trials.c.started_at).where(trials.c.job == jobs.c.id)
    return of_job.order_by(trials.c.number).limit(1).scalar_subquery()


def _heard_at() -> ScalarSelect[Any]:
    of_job = select(events.c.at).where(events.c.job == jobs.c.id)
    return of_job.order_by(events.c.seq.desc()).limit(1).scalar_subquery()


def _is_silent() -> ColumnElement[bool]:
    late = epoch_now() - bindparam("silence")
    runs = (jobs.c.origin == "http") & (jobs.c.state == "running")
    return and_(runs, jobs.c.active_at <= late, func.coalesce(_heard_at(), 0.0) <= late)


def _oldest() -> ColumnElement[Any]:
    """The trial that has run for longest, else the first one that waits."""
    of_job = select(trials.c.id).where(trials.c.job == jobs.c.id).limit(1)
    runs = of_job.where(trials.c.outcome == "started").order_by(trials.c.started_at, trials.c.number)
    waits = of_job.where(trials.c.outcome == "pending").order_by(trials.c.number)
    return func.coalesce(runs.scalar_subquery(), waits.scalar_subquery())


_SUMMARIES = (
    select(
        jobs.c.id,
        jobs.c.active_at,
        epoch_now().label("now"),
        _last("report").label("report"),
        _last("model").label("model"),
        warm_starts.c.known,
        warm_starts.c.best,
        _own().label("own"),
        _first_started_at().label("first_started_at"),
        _is_silent().label("silent"),
        _heard_at().label("heard_at"),
        case((_is_silent(), _oldest())).label("oldest"),
        select(doubts.c.seq).exists().label("anybody_doubted"),
    )
    .join_from(jobs, warm_starts, warm_starts.c.job == jobs.c.id, isouter=True)
    .where(jobs.c.id.in_(bindparam("ids", expanding=True)))
)


def _trials(conn: Connection, ids: set[str]) -> dict[str, Trial]:
    if not ids:
        return {}
    rows = conn.execute(select(*TRIAL_COLUMNS).where(trials.c.id.in_(sorted(ids))))
    return {row.id: trial_of(row) for row in rows}


def _waited(conn: Connection, ids: set[str]) -> dict[str, Any]:
    """Trials with the name of who holds them."""
    if not ids:
        return {}
    held = and_(attempts.c.trial == trials.c.id, attempts.c.attempt == trials.c.attempt)
    query = (
        select(trials.c.id, trials.c.number, trials.c.outcome, workers.c.name)
        .select_from(
            trials.join(attempts, held & trials.c.lease.is_not(None), isouter=True).join(
                workers, attempts.c.worker == workers.c.id, isouter=True
            )
        )
        .where(trials.c.id.in_(sorted(ids)))
    )
    return {row.id: row for row in conn.execute(query)}


def _stall(row: Any, waited: dict[str, Any]) -> Stall | None:
    if not row.silent:
        return None
    since = max(row.active_at, row.heard_at or 0.0)
    trial = waited.get(row.oldest)
    if trial is None:
        return Stall(since, None, None, False)
    return Stall(since, trial.number, trial.name, trial.outcome == "started")


def _baselines(conn: Connection, ids: Sequence[str]) -> dict[str, list[WorkerBaseline]]:
    found: dict[str, list[WorkerBaseline]] = {}
    for row in conn.execute(baselines_query(ids)):
        found.setdefault(row.job, []).append(WorkerBaseline(**row._mapping))
    return found


def _doubts(conn: Connection, ids: Sequence[str]) -> Doubts:
    newest = select(doubts.c.reason).where(doubts.c.worker == workers.c.id)
    newest = newest.order_by(doubts.c.made_at.desc(), doubts.c.seq.desc()).limit(1)
    rows = conn.execute(
        select(trials.c.job, workers.c.name, newest.scalar_subquery().label("reason"))
        .add_columns(func.count().label("results"))
        .join_from(trials, workers, trials.c.worker == workers.c.id)
        .where(trials.c.job.in_(ids), is_doubted())
        .group_by(trials.c.job, workers.c.id, workers.c.name)
        .order_by(workers.c.name)
    )
    found: Doubts = {}
    for row in rows:
        found.setdefault(row.job, []).append(ResultDoubt(row.name, row.reason, row.results))
    return found
