"""Rows of best-known schedules: which trials may be served, and how one is read with its evidence."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Row,
    Select,
    and_,
    bindparam,
    exists,
    func,
    select,
)

from ..best_records import (
    Baseline,
    BestSchedule,
    Challenger,
    Confirmation,
    KeptSchedule,
    Pin,
    SearchState,
)
from .belief import is_doubted
from .tables import (
    baselines,
    frozen,
    hardware,
    imports,
    jobs,
    pins,
    retirements,
    schedules,
    targets,
    trials,
    workers,
    workloads,
)

Key = tuple[str, str, str]

NOT_RETIRED = ~exists().where(
    retirements.c.candidate_key == trials.c.candidate_key, retirements.c.hardware == jobs.c.hardware
)
SERVABLE: tuple[ColumnElement[bool], ...] = (
    trials.c.outcome == "ok",
    trials.c.error.is_not(None),
    trials.c.codegen_version.is_not(None),
    jobs.c.hardware.is_not(None),
    NOT_RETIRED,
    ~is_doubted(),
)
"""Of trials joined with their jobs: checked, not censored, of a known codegen version, believed, not
retired."""

_EVIDENCE = (
    jobs.c.workload,
    jobs.c.target,
    jobs.c.hardware,
    trials.c.trace,
    trials.c.seconds,
    trials.c.samples,
    trials.c.error,
    trials.c.id.label("trial"),
    trials.c.job,
    trials.c.worker,
    trials.c.settled_at,
    trials.c.codegen_version,
    jobs.c.done,
    jobs.c.trials.label("asked"),
    jobs.c.state,
    workers.c.versions,
    baselines.c.trial.label("baseline"),
    baselines.c.seconds.label("baseline_seconds"),
    baselines.c.bound,
    imports.c.digest,
)
_STANDING = (
    schedules.c.challenger,
    schedules.c.challenger_seconds,
    schedules.c.confirmed_by,
    schedules.c.confirmed_seconds,
    schedules.c.confirmed_at,
    schedules.c.trial.label("standing"),
)
_PINNED = (
    pins.c.workload.label("pinned"),
    pins.c.trial.label("pinned_trial"),
    pins.c.note,
    pins.c.pinned_by,
    pins.c.pinned_at,
)


def of_key(table: Any, key: Key) -> tuple[ColumnElement[bool], ...]:
    workload, target, kind = key
    return table.c.workload == workload, table.c.target == target, table.c.hardware == kind


def same_key(a: FromClause, b: FromClause) -> ColumnElement[bool]:
    return and_(*(a.c[name] == b.c[name] for name in ("workload", "target", "hardware")))


def standing_query() -> Select[Any]:
    """What is best-known, whatever is pinned."""
    joined = schedules.join(trials, trials.c.id == schedules.c.trial).join(jobs, trials.c.job == jobs.c.id)
    return select(*_EVIDENCE, *_STANDING).select_from(_with_evidence(joined))


def best_query() -> Select[Any]:
    """What is served: the pinned trial of a key, else the best-known one."""
    chosen = schedules.outerjoin(pins, same_key(pins, schedules))
    joined = chosen.join(trials, trials.c.id == _served()).join(jobs, trials.c.job == jobs.c.id)
    return select(*_EVIDENCE, *_STANDING, *_PINNED).select_from(_with_evidence(joined))


def frozen_query() -> Select[Any]:
    """What a freeze holds, as far as it may still be served."""
    joined = frozen.join(trials, trials.c.id == frozen.c.trial).join(jobs, trials.c.job == jobs.c.id)
    return select(*_EVIDENCE).select_from(_with_evidence(joined)).where(NOT_RETIRED, ~is_doubted())


def rival_query() -> Select[Any]:
    """Any trial that may be served."""
    joined = trials.join(jobs, trials.c.job == jobs.c.id)
    return select(*_EVIDENCE).select_from(_with_evidence(joined)).where(*SERVABLE)


def listed_query() -> Select[Any]:
    """What is best-known, with the texts of its keys and what is pinned in its place."""
    return kept_query().add_columns(*_PINNED).outerjoin(pins, same_key(pins, schedules))


def kept_query() -> Select[Any]:
    """What is best-known, with the texts of its keys."""
    query = standing_query().add_columns(
        workloads.c.name,
        workloads.c.program,
        workloads.c.script,
        targets.c.description,
        hardware.c.facts,
        imports.c.line,
    )
    return (
        query.join(workloads, workloads.c.key == schedules.c.workload)
        .join(targets, targets.c.key == schedules.c.target)
        .join(hardware, hardware.c.key == schedules.c.hardware)
    )


def _served() -> Any:
    return func.coalesce(pins.c.trial, schedules.c.trial)


def _with_evidence(joined: FromClause) -> FromClause:
    return (
        joined.outerjoin(workers, workers.c.id == trials.c.worker)
        .outerjoin(baselines, same_key(baselines, jobs))
        .outerjoin(imports, imports.c.trial == trials.c.id)
    )


@cache
def _of_one_key(query: Callable[[], Select[Any]], table: FromClause) -> Select[Any]:
    """A query of one key, made once: making it takes longer than the database takes to answer it."""
    return query().where(*(table.c[name] == bindparam(name) for name in ("workload", "target", "hardware")))


def read_best(conn: Connection, key: Key) -> BestSchedule | None:
    """What is served for a key."""
    return _read(conn, _of_one_key(best_query, schedules), key)


def read_standing(conn: Connection, key: Key) -> BestSchedule | None:
    """What is best-known for a key, whatever is pinned."""
    return _read(conn, _of_one_key(standing_query, schedules), key)


def read_frozen(conn: Connection, key: Key, freeze: str) -> BestSchedule | None:
    """What a freeze holds for a key."""
    query = _of_one_key(frozen_query, frozen).where(frozen.c.freeze == freeze)
    return _read(conn, query, key)


def _read(conn: Connection, query: Select[Any], key: Key) -> BestSchedule | None:
    row = conn.execute(query, dict(zip(("workload", "target", "hardware"), key, strict=True))).one_or_none()
    return None if row is None else best_of(row)


def best_of(row: Row[Any]) -> BestSchedule:
    """The record of a row of one of the queries above, as it is served. Damaged samples are none."""
    return _schedule_of(row, _pin_of(row))


def _pin_of(row: Row[Any]) -> Pin | None:
    said = row._mapping
    if said.get("pinned") is None:
        return None
    key = row.workload, row.target, row.hardware
    return Pin(*key, said["pinned_trial"], said["note"], said["pinned_by"], said["pinned_at"])


def _schedule_of(row: Row[Any], pin: Pin | None) -> BestSchedule:
    said = row._mapping
    off = pin is not None and pin.trial is None
    confirmation = challenger = baseline = None
    if said.get("confirmed_by") is not None and said["standing"] == row.trial:
        confirmation = Confirmation(said["confirmed_by"], said["confirmed_seconds"], said["confirmed_at"])
    if said.get("challenger") is not None:
        challenger = Challenger(said["challenger"], said["challenger_seconds"])
    if row.baseline is not None:
        baseline = Baseline(row.baseline, row.baseline_seconds, bool(row.bound))
    samples, damage = _samples(row.samples)
    return BestSchedule(
        workload=row.workload,
        target=row.target,
        hardware=row.hardware,
        trace="" if off else row.trace,
        seconds=0.0 if off else row.seconds,
        samples=() if off else samples,
        error=row.error,
        trial=row.trial,
        job=row.job,
        worker=row.worker,
        measured_at=row.settled_at,
        codegen_version=row.codegen_version,
        search=SearchState(done=row.done, asked=row.asked, state=row.state),
        kind="default" if off else "exact",
        reason=_reason(row, pin) + damage,
        versions=row.versions or "{}",
        baseline=baseline,
        confirmation=confirmation,
        challenger=challenger,
        pin=pin,
        imported=row.digest is not None,
    )


def kept_of(row: Row[Any]) -> KeptSchedule:
    """What is pinned is said of a schedule, and changes nothing of it."""
    return KeptSchedule(
        schedule=replace(_schedule_of(row, None), pin=_pin_of(row)),
        name=row.name,
        program=row.program,
        script=row.script,
        description=row.description,
        facts=row.facts,
        line=row.line,
    )


def _reason(row: Row[Any], pin: Pin | None) -> str:
    if pin is None:
        where = "another store" if row.digest is not None else f"trial {row.trial}"
        return f"measured for this workload, target and hardware by {where}"
    by = f" by {pin.by}" if pin.by else ""
    note = f": {pin.note}" if pin.note else ""
    what = "the default schedule" if pin.trial is None else f"trial {pin.trial}"
    return f"{what} is pinned{by}{note}"


def _samples(text: Any) -> tuple[tuple[float, ...], str]:
    """The stored samples, and what to say where they are no longer readable."""
    try:
        found = json.loads(text)
        if isinstance(found, list) and all(_is_time(value) for value in found):
            return tuple(found), ""
    except (TypeError, ValueError, RecursionError):
        pass
    return (), "; its samples are damaged"


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and value > 0
