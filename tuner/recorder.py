"""Where `tune` records what it measures."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Protocol

import rfc8785

from ..db.errors import JobOver
from ..db.process_identity import ProcessIdentity
from ..db.records import NewJob, Settlement, Trial
from ..db.store import Store
from ..db.words import FinalJobState, History, JobState
from ..measure.messages import MeasureResult
from .budget import Budget
from .candidate import Candidate
from .crown import Crowned
from .errors import JobStopped
from .job_log import JobLog
from .model_quality import ModelQuality, RoundQuality
from .outcome import Trial as Timed
from .rivals import Rivals, rivals_of
from .search import new_trials, stored_trials
from .session import BestFound
from .snapshot import Snapshot
from .task import TuningTask
from .time_split import TimeSplit
from .warm_start import Snapshot as Start

__all__ = ["NoRecorder", "Recorder", "StoreRecorder"]


class Recorder(Protocol):
    """Is told of a search step by step, from one thread."""

    @property
    def job(self) -> str | None:
        """The id of the job under which the trials are recorded."""

    def left(self) -> tuple[list[Trial], float]:
        """What an earlier process has left: its trials, and how many seconds it took; nothing of a new
        search."""

    def start(self, look_back: Callable[[], Start]) -> Start | None:
        """What is known from other searches: what `look_back` finds now, or what an earlier process of this
        one has found."""

    def begun(self, says: str, resumed: int) -> None:
        """The search begins: with what strategy, and after how many trials of an earlier process."""

    def stands(self) -> tuple[JobState, str]:
        """How a search that was stopped stands."""

    def asked(self, candidates: Sequence[Candidate]) -> None: ...

    def settled(self, candidate: Candidate, result: MeasureResult) -> None: ...

    def best(self, found: BestFound) -> None: ...

    def model(self, quality: RoundQuality, overall: ModelQuality) -> None: ...

    def progress(self, snapshot: Snapshot, *, last: bool = False) -> None: ...

    def report(self, split: TimeSplit, model: ModelQuality) -> None: ...

    def rivals(self, own: Sequence[Candidate]) -> Sequence[Timed]:
        """What stands as best-known by other jobs, and is to be timed in turn with the search's best; none
        that is among its own."""

    def crowned(self, crowned: Crowned) -> None: ...

    def ended(self, state: FinalJobState, reason: str) -> None:
        """The search is over; said once, whatever happened."""

    def paused(self, reason: str) -> None:
        """The search stops here and can be resumed; said in the place of `ended`."""


class NoRecorder:
    """Keeps nothing."""

    job: str | None = None

    def left(self) -> tuple[list[Trial], float]:
        return [], 0.0

    def start(self, look_back: Callable[[], Start]) -> Start | None:
        return None

    def begun(self, says: str, resumed: int) -> None:
        return

    def stands(self) -> tuple[JobState, str]:
        return "cancelled", ""

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

    def rivals(self, own: Sequence[Candidate]) -> Sequence[Timed]:
        return ()

    def crowned(self, crowned: Crowned) -> None:
        return

    def ended(self, state: FinalJobState, reason: str) -> None:
        return

    def paused(self, reason: str) -> None:
        return


class StoreRecorder:
    """Records into a SQL store, as a job of origin `local` whose trials this process settles itself.

    `resumes` is the id of a job that is to go on; it must be a local one that no living process tunes
    (Conflict) and that is not complete (AlreadyComplete). Else a new job is made. `space` names a search
    space of the user's own, which is needed again to go on.

    What others do to the job ends the search: JobStopped where they paused it, after the result at hand is
    stored, JobOver where they ended it, StaleSearch where they search it anew.
    """

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
        clock: Callable[[], float],
        space: str = "",
        resumes: str | None = None,
        history: History = "use",
        suggested: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self._store = store
        self._task = task
        self._seed = seed
        process = ProcessIdentity.own().text
        store.sweep()  # without a server nobody else looks for jobs whose process is gone
        if resumes is None:
            self._job = self._created(hardware, facts, budget, strategy, space, history, suggested)
            self._epoch = store.begin_search(self._job, process)
        else:
            self._job = resumes
            self._epoch = store.resume_local(resumes, process)
        self.job: str | None = self._job
        self._rivals = Rivals()
        self._log = JobLog(store, self._job, self._epoch, task, clock)

    def _created(
        self,
        hardware: str,
        facts: dict[str, Any],
        budget: Budget,
        strategy: str,
        space: str,
        history: History,
        suggested: Sequence[Mapping[str, Any]],
    ) -> str:
        store, task, seed = self._store, self._task, self._seed
        workload, target = _canonical(task.workload), _canonical(task.target)
        store.put_workload(task.workload_key, task.name, workload, task.script)
        store.put_target(task.target_key, target)
        store.put_hardware(hardware, _canonical(facts))
        if task.structure is not None:
            store.put_structure(task.workload_key, task.structure.key)
        limits = {name: value for name, value in asdict(budget).items() if value is not None}
        spec = {"workload": task.workload, "target": task.target, "budget": limits, "seed": seed}
        spec |= {"history": history, "suggestions": list(suggested)}
        if space:
            spec["space"] = space
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
            history=history,
            origin="local",
            spec=_canonical(spec),
        )
        return store.create_job(job).id

    def left(self) -> tuple[list[Trial], float]:
        """The trials that the job has, and the seconds of its budget that are over."""
        job, now = self._store.job(self._job), self._store.now()
        spent = 0.0 if job.started_at is None else max(0.0, now - job.started_at - job.stood_still(now))
        return stored_trials(self._store, self._job), spent

    def start(self, look_back: Callable[[], Start]) -> Start | None:
        """What the search began with, or begins with now; None where its job ignores the history."""
        job = self._store.job(self._job)
        if job.history == "ignore":
            return None
        kept = self._store.warm_start(self._job)
        if kept is None:
            start = Start() if job.done else look_back()
            count = start.counts
            kept = self._store.put_warm_start(
                self._job, self._epoch, start.to_json(), count.trials, count.best
            )
            self._log.warm_start(start)
        return Start.from_json(kept)

    def begun(self, says: str, resumed: int) -> None:
        self._log.search(says, resumed)

    def stands(self) -> tuple[JobState, str]:
        """The state and the reason of the job, whoever has decided it."""
        job = self._store.job(self._job)
        return job.state, job.reason

    def asked(self, candidates: Sequence[Candidate]) -> None:
        trials = new_trials(candidates, self._task.feature_schema, self._seed)
        self._store.add_trials(self._job, self._epoch, trials)

    def settled(self, candidate: Candidate, result: MeasureResult) -> None:
        settlement = _settlement(result, self._task.codegen)
        self._store.settle_local(self._job, self._epoch, candidate.number, settlement)
        if self._store.job(self._job).state == "paused":
            raise JobStopped(f"job {self._job} is paused")

    def best(self, found: BestFound) -> None:
        self._log.best(found)

    def model(self, quality: RoundQuality, overall: ModelQuality) -> None:
        self._log.model(quality, overall)

    def report(self, split: TimeSplit, model: ModelQuality) -> None:
        self._log.report(split, model)

    def progress(self, snapshot: Snapshot, *, last: bool = False) -> None:
        self._log.progress(snapshot, last=last)

    def rivals(self, own: Sequence[Candidate]) -> Sequence[Timed]:
        self._rivals = rivals_of(self._store, self._store.job(self._job), own)
        return self._rivals.trials

    def crowned(self, crowned: Crowned) -> None:
        if not crowned.times:
            return
        number = crowned.winner.candidate.number
        self._log.crowned(number, crowned.seconds, crowned.times)
        if number in crowned.times:
            self._store.crown(self._job, self._epoch, number, crowned.times[number])
            for trial, reason in self._rivals.faults(crowned):
                self._store.retire(trial, reason)
            winner = self._store.trials(self._job, number - 1, 1)[0].id
            if times := self._rivals.times(crowned, winner):
                self._store.decide(self._job, self._epoch, times)

    def ended(self, state: FinalJobState, reason: str) -> None:
        self._store.finish_job(self._job, self._epoch, state, reason)

    def paused(self, reason: str) -> None:
        with contextlib.suppress(JobOver):
            self._store.pause_job(self._job, reason, self._epoch)


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
        baseline=tuple(result.baseline),
        disturbance=result.disturbance,
    )


def _canonical(value: dict[str, Any]) -> str:
    return rfc8785.dumps(value).decode()
