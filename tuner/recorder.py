"""Where `tune` records what it measures."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, Protocol

import rfc8785

from ..db.records import NewJob, Settlement
from ..db.store import Store
from ..db.words import FinalJobState
from ..measure.messages import MeasureResult
from .budget import Budget
from .candidate import Candidate
from .crown import Crowned
from .job_log import JobLog
from .model_quality import ModelQuality, RoundQuality
from .search import new_trials
from .session import BestFound
from .snapshot import Snapshot
from .task import TuningTask
from .time_split import TimeSplit

__all__ = ["NoRecorder", "Recorder", "StoreRecorder"]


class Recorder(Protocol):
    """Is told of a search step by step, from one thread."""

    @property
    def job(self) -> str | None:
        """The id of the job under which the trials are recorded."""

    def asked(self, candidates: Sequence[Candidate]) -> None: ...

    def settled(self, candidate: Candidate, result: MeasureResult) -> None: ...

    def best(self, found: BestFound) -> None: ...

    def model(self, quality: RoundQuality, overall: ModelQuality) -> None: ...

    def progress(self, snapshot: Snapshot, *, last: bool = False) -> None: ...

    def report(self, split: TimeSplit, model: ModelQuality) -> None: ...

    def crowned(self, crowned: Crowned) -> None: ...

    def ended(self, state: FinalJobState, reason: str) -> None:
        """The search is over; said once, whatever happened."""


class NoRecorder:
    """Keeps nothing."""

    job: str | None = None

    def asked(self, candidates: Sequence[Candidate]) -> None:
        return

    def settled(self, candidate: Candidate, result: MeasureResult) -> None:
        return

    def best(self, found: BestFound) -> None:
        return

    def model(self, quality: RoundQuality, overall: ModelQuality) -> None:
        return

    def progress(self, snapshot: Snapshot, *, last: bool = False) -> None:
        return

    def report(self, split: TimeSplit, model: ModelQuality) -> None:
        return

    def crowned(self, crowned: Crowned) -> None:
        return

    def ended(self, state: FinalJobState, reason: str) -> None:
        return


class StoreRecorder:
    """Records into a SQL store, as a job of origin `local` whose trials this process settles itself."""

    def __init__(
        self,
        store: Store,
        task: TuningTask,
        *,
        hardware: str,
        facts: dict[str, Any],
        budget: Budget,
        seed: int,
        strategy: str,
        says: str,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._task = task
        self._seed = seed
        workload, target = _canonical(task.workload), _canonical(task.target)
        store.put_workload(task.workload_key, task.name, workload, task.script)
        store.put_target(task.target_key, target)
        store.put_hardware(hardware, _canonical(facts))
        limits = {name: value for name, value in asdict(budget).items() if value is not None}
        spec = {"workload": task.workload, "target": task.target, "budget": limits, "seed": seed}
        job = NewJob(
            workload=task.workload_key,
            target=task.target_key,
            hardware=hardware,
            trials=budget.trials,
            seconds=budget.seconds,
            target_seconds=budget.target_seconds,
            patience=budget.patience,
            seed=seed,
            strategy=strategy,
            worker_wait=0.0,
            origin="local",
            spec=_canonical(spec),
        )
        self.job: str | None = store.create_job(job).id
        self._job = self.job
        self._epoch = store.begin_search(self._job)
        self._log = JobLog(store, self._job, task, clock)
        self._log.search(says, 0)

    def asked(self, candidates: Sequence[Candidate]) -> None:
        trials = new_trials(candidates, self._task.feature_schema, self._seed)
        self._store.add_trials(self._job, self._epoch, trials)

    def settled(self, candidate: Candidate, result: MeasureResult) -> None:
        settlement = _settlement(result, self._task.codegen)
        self._store.settle_local(self._job, self._epoch, candidate.number, settlement)

    def best(self, found: BestFound) -> None:
        self._log.best(found)

    def model(self, quality: RoundQuality, overall: ModelQuality) -> None:
        self._log.model(quality, overall)

    def report(self, split: TimeSplit, model: ModelQuality) -> None:
        self._log.report(split, model)

    def progress(self, snapshot: Snapshot, *, last: bool = False) -> None:
        self._log.progress(snapshot, last=last)

    def crowned(self, crowned: Crowned) -> None:
        if crowned.times:
            number = crowned.winner.candidate.number
            self._log.crowned(number, crowned.seconds, crowned.times)
            if number in crowned.times:
                self._store.crown(self._job, self._epoch, number, crowned.times[number])

    def ended(self, state: FinalJobState, reason: str) -> None:
        self._store.finish_job(self._job, self._epoch, state, reason)


def _settlement(result: MeasureResult, codegen: str) -> Settlement:
    failure = result.failure
    detail: dict[str, Any] = {}
    if failure is not None:
        detail = {"limit": failure.limit, "elapsed": failure.elapsed, "last_words": failure.last_words}
        if failure.of_workload:
            detail["of_workload"] = True
    return Settlement(
        seconds=result.seconds,
        samples=tuple(result.samples),
        censored=result.censored,
        error=result.error,
        failure_kind=failure.kind if failure else None,
        failure_message=failure.message if failure else "",
        failure_detail=json.dumps(detail, allow_nan=False),
        build_seconds=result.build_seconds,
        wall_seconds=result.wall_seconds,
        codegen_version=codegen,
        disturbed=result.disturbed,
        calls=None if failure else result.calls,
        cache=None if failure else result.cache,
    )


def _canonical(value: dict[str, Any]) -> str:
    return rfc8785.dumps(value).decode()
