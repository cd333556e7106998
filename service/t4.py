"""The trials of a job in T4, the results format of the auto-tuning community.

The fields are those of "Open Autotuning Results Schema" 1.0.0 as Kernel Tuner carries it
(KernelTuner/kernel_tuner, kernel_tuner/schema/T4/1.0.0/results-schema.json, and store_output_file of
kernel_tuner/file_utils.py, whose times are milliseconds).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from ..compiler.ir import VerifyError
from ..compiler.target import TargetError
from ..db.records import Trial
from ..db.store import Store
from ..tuner.opening import reopen_task
from ..tuner.placing import Placed, place
from ..tuner.task import TuningTask

VERSION = "1.0.0"

_INVALIDITY: Mapping[str, str] = {
    "ok": "correct",
    "censored": "correct",
    "build_error": "compile",
    "build_timeout": "timeout",
    "run_error": "runtime",
    "run_timeout": "timeout",
    "wrong_output": "correctness",
    "constraint": "constraints",
    "worker_lost": "runtime",
    "crashes_device": "runtime",
}
"""Our outcomes in the words of T4; a trial without one was not measured, and is left out."""


def t4_results(store: Store, job_id: str) -> dict[str, Any]:
    """The measured trials of a job, in their order. NotFound."""
    job = store.job(job_id)
    try:
        task = reopen_task(job, store)
    except (VerifyError, TargetError):
        task = None  # another version's workload: its trials are told by their traces
    results = [_result(t, task) for t in _trials(store, job_id) if t.outcome in _INVALIDITY]
    return {"schema_version": VERSION, "results": results}


def _trials(store: Store, job_id: str) -> Iterator[Trial]:
    after = -1
    while page := store.trials(job_id, after):
        yield from page
        after = page[-1].number


def _result(trial: Trial, task: TuningTask | None) -> dict[str, Any]:
    measurements = []
    if trial.seconds is not None:
        measurements.append({"name": "time", "value": trial.seconds * 1e3, "unit": "ms"})
    if trial.error is not None:
        measurements.append({"name": "error", "value": trial.error, "unit": "tolerances"})
    at = datetime.fromtimestamp(trial.settled_at or trial.created_at, UTC)
    return {
        "timestamp": at.isoformat(timespec="milliseconds"),
        "configuration": _configuration(trial, task),
        "objectives": ["time"],
        "times": {
            "compilation_time": trial.build_seconds * 1e3,
            "runtimes": [sample * 1e3 for sample in trial.samples],
        },
        "invalidity": _INVALIDITY[trial.outcome],
        "correctness": 1 if trial.seconds is not None else 0,
        "measurements": measurements,
    }


def _configuration(trial: Trial, task: TuningTask | None) -> dict[str, Any]:
    """The sketch and its knobs; of a schedule that is no point of the space, its trace."""
    where = None if task is None else place(json.loads(trial.trace), task.space, trial.sketch)
    if task is not None and isinstance(where, Placed):
        (columns,) = (s.columns for s in task.space.sketches if s.name == where.sketch)
        names = [knob.name for knob in columns.knobs]
        return {"sketch": where.sketch, **dict(zip(names, where.row, strict=True))}
    return {"sketch": trial.sketch, "trace": json.loads(trial.trace)}
