"""Records that come from other stores."""

import json
from typing import Any

from sqlalchemy import Connection, insert, select

from ..best_records import ForeignRecord
from ..checks import check_int, check_json, check_seconds, check_text, check_word, check_workload
from ..errors import Conflict, InvalidValue
from ..schedule_store import Imported
from ..words import FINAL_JOB_STATES
from .clock import now_of
from .offers import offer_best, standing_row
from .part import Part, upsert
from .tables import hardware, imports, jobs, structures, targets, trials, workloads

_LINE = 32 << 20


class ImportPart(Part):
    def import_record(self, record: ForeignRecord) -> Imported:
        _check(record)
        with self._database.write() as conn:
            if _is_known(conn, record):
                return "known"
            now = now_of(conn)
            _put_keys(conn, record, now)
            trial = _put_trial(conn, record, now)
            values = {"digest": record.digest, "line": record.line, "imported_at": now}
            conn.execute(insert(imports).values(trial=trial, **values))
            offer_best(conn, trial, now)
            stands = standing_row(conn, (record.workload, record.target, record.hardware))
            if stands is None:
                raise InvalidValue("trial", "its schedule was retired here")
            if stands.trial == trial:
                return "best"
            return "challenger" if stands.challenger == trial else "slower"


def _check(record: ForeignRecord) -> None:
    check_workload(record.workload, record.name, record.program, record.script)
    for name in ("digest", "structure", "target", "hardware", "trial", "candidate_key", "sketch"):
        check_text(name, getattr(record, name))
    check_text("codegen_version", record.codegen_version)
    check_text("line", record.line, _LINE)
    check_json("description", record.description)
    check_json("facts", record.facts)
    check_json("trace", record.trace, 1 << 20)
    check_seconds("seconds", record.seconds)
    check_seconds("error", record.error, zero=True)
    if record.error > 1:
        raise InvalidValue("error", f"is {record.error} tolerances: its output was wrong")
    for n, sample in enumerate(record.samples):
        check_seconds(f"samples[{n}]", sample)
    check_seconds("measured_at", record.measured_at, zero=True)
    check_int("search.done", record.search.done, 0)
    check_int("search.asked", record.search.asked, 1)
    check_word("search.state", record.search.state, FINAL_JOB_STATES)


def _is_known(conn: Connection, record: ForeignRecord) -> bool:
    if conn.execute(select(imports.c.trial).where(imports.c.digest == record.digest)).first() is not None:
        return True
    own = trials.c.id == record.trial, trials.c.candidate_key == record.candidate_key
    return conn.execute(select(trials.c.id).where(*own)).first() is not None


def _put_keys(conn: Connection, record: ForeignRecord, now: float) -> None:
    """The keys' texts, as far as they are not here: what is here was read here."""
    texts = {"name": record.name, "program": record.program, "script": record.script}
    rows: tuple[tuple[Any, dict[str, Any]], ...] = (
        (workloads, {"key": record.workload, "created_at": now, **texts}),
        (targets, {"key": record.target, "created_at": now, "description": record.description}),
        (hardware, {"key": record.hardware, "created_at": now, "facts": record.facts}),
        (structures, {"workload": record.workload, "structure": record.structure}),
    )
    for table, values in rows:
        index = [column.name for column in table.primary_key]
        conn.execute(upsert(conn, table).values(**values).on_conflict_do_nothing(index_elements=index))


def _put_trial(conn: Connection, record: ForeignRecord, now: float) -> str:
    job = f"import_{record.digest[:16]}"
    if conn.execute(select(jobs.c.id).where(jobs.c.id == job)).first() is not None:
        raise Conflict(f"job {job} is of another record")
    conn.execute(
        insert(jobs).values(
            id=job,
            state=record.search.state,
            reason="imported from another store",
            workload=record.workload,
            target=record.target,
            hardware=record.hardware,
            trials=record.search.asked,
            seed=0,
            strategy="imported",
            worker_wait=0.0,
            origin="imported",
            spec="{}",
            epoch=0,
            done=record.search.done,
            created_at=now,
            finished_at=now,
            active_at=now,
        )
    )
    trial = f"{job}.0"
    conn.execute(
        insert(trials).values(
            id=trial,
            job=job,
            number=0,
            batch=0,
            candidate_key=record.candidate_key,
            sketch=record.sketch,
            trace=record.trace,
            features=b"",
            feature_schema=0,
            input_seed=0,
            outcome="ok",
            attempt=1,
            seconds=record.seconds,
            samples=json.dumps(list(record.samples)),
            censored=False,
            error=record.error,
            failure_message="",
            failure_detail="{}",
            build_seconds=0.0,
            wall_seconds=0.0,
            codegen_version=record.codegen_version,
            created_at=now,
            settled_at=record.measured_at,
            origin="imported",
        )
    )
    return trial
