"""What earlier searches leave to later ones."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, exists, insert, select, update

from ..checks import PROGRAM, check_features, check_int, check_json, check_limit, check_text
from ..errors import NotFound
from ..records import PastSearch, PastTrial
from ..words import OPEN_OUTCOMES
from .belief import is_doubted
from .catalog import require
from .job_rows import job_row, searched_row
from .part import Part, upsert
from .tables import jobs, retirements, schedules, structures, trials, warm_starts, workloads

_COLUMNS = tuple(trials.c[field.name] for field in fields(PastTrial))
_NO_RESULT = (*OPEN_OUTCOMES, "cancelled", "worker_lost")
_JOBS = 4
_CHUNK = 500


class HistoryPart(Part):
    def past_trials(
        self, workload: str, target: str, hardware: str, codegen_version: str, limit: int = 10_000
    ) -> list[PastTrial]:
        check_limit(limit)
        key = _of_key(workload, target, hardware)
        newest = select(jobs.c.id).where(*key).order_by(jobs.c.seq.desc())
        found: list[PastTrial] = []
        with self._database.read() as conn:
            # Job by job, so that no more is read and sorted than is asked for.
            for job in conn.execute(newest).scalars().all():
                query = (
                    select(*_COLUMNS)
                    .where(trials.c.job == job, trials.c.codegen_version == codegen_version)
                    .where(trials.c.outcome.not_in(_NO_RESULT), ~_retired(hardware), ~is_doubted())
                    .order_by(trials.c.number.desc())
                    .limit(limit - len(found))
                )
                found += [_past(row) for row in conn.execute(query)]
                if len(found) >= limit:
                    break
        return found[::-1]

    def past_searches(self, hardware: str, structure: str, limit: int = 32) -> list[PastSearch]:
        check_limit(limit)
        alike = structures.c.structure == structure
        here = schedules.c.hardware == hardware
        found: dict[PastSearch, None] = {}
        with self._database.read() as conn:
            for chosen in ((alike, here), (alike, ~here), (here,), (~here,)):
                if len(found) < limit:
                    found |= dict.fromkeys(_searches(conn, chosen, limit))
        return list(found)[:limit]

    def sampled_trials(self, search: PastSearch, fastest: int, first: int) -> list[PastTrial]:
        check_limit(fastest)
        check_limit(first)
        key = _of_key(search.workload, search.target, search.hardware)
        newest = select(jobs.c.id).where(*key, jobs.c.done > 0).order_by(jobs.c.seq.desc()).limit(_JOBS)
        found: dict[str, PastTrial] = {}
        with self._database.read() as conn:
            for job in reversed(conn.execute(newest).scalars().all()):
                of_job = select(*_COLUMNS).where(
                    trials.c.job == job, ~_retired(search.hardware), ~is_doubted()
                )
                timed = of_job.where(trials.c.outcome == "ok")
                timed = timed.order_by(trials.c.seconds, trials.c.number).limit(fastest)
                early = of_job.where(trials.c.number < first, trials.c.outcome.not_in(_NO_RESULT))
                both = {row.id: _past(row) for query in (timed, early) for row in conn.execute(query)}
                found |= sorted(both.items(), key=lambda item: item[1].number)
        return list(found.values())

    def past_trials_by_id(self, ids: Sequence[str]) -> list[PastTrial]:
        found: dict[str, PastTrial] = {}
        with self._database.read() as conn:
            for chunk in _chunks(ids):
                query = select(*_COLUMNS).where(trials.c.id.in_(chunk), trials.c.outcome.not_in(_NO_RESULT))
                found |= {row.id: _past(row) for row in conn.execute(query)}
        return [found[each] for each in ids if each in found]

    def put_features(self, features: Mapping[str, bytes], feature_schema: int) -> None:
        check_int("feature_schema", feature_schema, 0)
        for row in features.values():
            check_features(row)
        with self._database.write() as conn:
            for trial, row in sorted(features.items()):
                values = {"features": row, "feature_schema": feature_schema}
                if not conn.execute(update(trials).where(trials.c.id == trial).values(**values)).rowcount:
                    raise NotFound("trial", trial)

    def put_structure(self, workload: str, structure: str) -> None:
        check_text("structure", structure)
        with self._database.write() as conn:
            require(conn, workloads, "workload", workload)
            statement = upsert(conn, structures).values(workload=workload, structure=structure)
            again = {"structure": statement.excluded.structure}
            conn.execute(statement.on_conflict_do_update(index_elements=["workload"], set_=again))

    def put_warm_start(
        self, job_id: str, epoch: int, snapshot: str, known: int = 0, best: str | None = None
    ) -> str:
        check_json("snapshot", snapshot, PROGRAM)
        check_int("known", known, 0)
        with self._database.write() as conn:
            searched_row(conn, job_id, epoch)
            if (kept := _kept(conn, job_id)) is not None:
                return kept
            values = {"snapshot": snapshot, "known": known, "best": best}
            conn.execute(insert(warm_starts).values(job=job_id, **values))
            return snapshot

    def warm_start(self, job_id: str) -> str | None:
        with self._database.read() as conn:
            job_row(conn, job_id)
            return _kept(conn, job_id)


def _kept(conn: Connection, job_id: str) -> str | None:
    query = select(warm_starts.c.snapshot).where(warm_starts.c.job == job_id)
    return conn.execute(query).scalar_one_or_none()


def _of_key(workload: str, target: str, hardware: str) -> tuple[ColumnElement[bool], ...]:
    return jobs.c.workload == workload, jobs.c.target == target, jobs.c.hardware == hardware


def _retired(hardware: str) -> ColumnElement[bool]:
    same = retirements.c.candidate_key == trials.c.candidate_key
    return exists().where(same, retirements.c.hardware == hardware)


def _searches(conn: Connection, chosen: Iterable[ColumnElement[bool]], limit: int) -> list[PastSearch]:
    query: Select[Any] = (
        select(
            schedules.c.workload,
            schedules.c.target,
            schedules.c.hardware,
            structures.c.structure,
            schedules.c.seconds,
        )
        .join_from(schedules, structures, schedules.c.workload == structures.c.workload, isouter=True)
        .where(*chosen)
        .order_by(schedules.c.updated_at.desc(), schedules.c.workload, schedules.c.target)
        .limit(limit)
    )
    return [PastSearch(**row._mapping) for row in conn.execute(query)]


def _past(row: Row[Any]) -> PastTrial:
    return PastTrial(**{column.name: row._mapping[column] for column in _COLUMNS})


def _chunks(ids: Sequence[str]) -> Iterable[Sequence[str]]:
    return (ids[start : start + _CHUNK] for start in range(0, len(ids), _CHUNK))
