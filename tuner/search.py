"""The search of a stored job, whose trials are measured by workers elsewhere."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from itertools import islice

from ..db.errors import JobOver, StaleSearch
from ..db.records import Job, NewTrial, Trial
from ..db.store import Store
from ..db.words import FINAL_JOB_STATES
from .beginning import Beginning, suggested_in
from .candidate import Candidate
from .errors import TookTooLong
from .finals import StoredFinals
from .job_log import JobLog
from .look_back import look_back
from .model_watch import ModelWatch
from .opening import budget_of
from .replay import outcome_of, resume
from .session import TuningSession
from .snapshot import Snapshot
from .strategies import SearchStrategy
from .suggested import suggestions_of
from .task import TuningTask
from .time_split import Stopwatch, TimeSplit
from .warm_start import Snapshot as Start
from .watchdog import in_time

__all__ = ["StoredSearch", "input_seed", "new_trials", "stored_trials"]

POLL_SECONDS = 0.03
_MOST_POLL_SECONDS = 0.5
_WAITED_SHARE = 0.05
"""Waiting for results, a search looks for them the less often the longer none has come, and the more are
out: it costs the database the same whether one has come or not."""
_CHEAP = 16
"""So many trials are read in no time."""
JOB_SECONDS = 0.25
"""How often the job itself is read, to see that it was cancelled or paused."""


class StoredSearch:
    """Proposes trials into the store and learns from what workers settle, until the job ends.

    Nothing is kept but in the store: a search that was killed begins again with a new epoch, is brought to
    where the stored trials left off, and goes on.
    """

    def __init__(
        self,
        job: Job,
        epoch: int,
        store: Store,
        task: TuningTask,
        strategy: SearchStrategy,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        watch: Stopwatch | None = None,
    ) -> None:
        self._job = job
        self._epoch = epoch
        self._store = store
        self._task = task
        self._strategy = strategy
        self._clock = clock
        self._sleep = sleep
        self._log = JobLog(store, job.id, epoch, task, clock)
        self._watch = watch or Stopwatch()
        self._begun: float | None = None
        self._job_read_at = clock()
        self._announced = 0
        self._told_at = clock()

    def run(self) -> Job:
        """Search to the end and return the job as it then stands.

        It ends early, and quietly, when somebody else has ended the job, extended it or begun a newer search
        of it; for a job that is measured outside, where it has nothing more to propose for now; and for one
        that waits for its first worker, where what was measured before is not all that it asks for. While the
        job is paused it proposes nothing. Raises NoLegalCandidate and SuggestionRefused.
        """
        try:
            return self._run()
        except (StaleSearch, JobOver):
            # It is no longer ours to say how the job stands.
            return self._store.job(self._job.id)

    def _run(self) -> Job:
        begun = self._clock()
        if self._job.hardware is None:  # no worker has come yet; what it suggests may be wrong all the same
            suggestions_of(self._task, suggested_in(self._job))
            return self._job
        stored = stored_trials(self._store, self._job.id)
        self._note_start(stored)
        # Its seconds may have passed while nothing searched: that is no failure.
        with in_time("going on from the stored trials", None):
            begin = self._beginning(stored)
            session = resume(
                lambda adopted: begin.session(
                    self._task,
                    self._strategy,
                    budget_of(self._job),
                    self._job.seed,
                    adopted,
                    self._watch,
                    self._job.batch,
                ),
                stored,
                self._task,
            )
        self._announced = len(session.events)
        self._model = self._watched(session)
        self._log.search(self._strategy.describe(), len(stored))
        self._add(session.candidates[len(stored) :])
        while not session.finished:
            if self._ended() or self._waits_for_a_worker():
                return self._job
            if self._out_of_time():
                session.close(self._time_is_up(session))
                break
            try:
                asked = self._ask(session)
            except TookTooLong as error:
                session.close(str(error))
                break
            told = self._tell(session)
            self._announce(session)
            if not asked and not told:
                if self._job.origin == "outside":
                    return self._job  # who measures it may take days: told more, it is searched again
                self._sleep(self._until_next_look(session))
        self._announce(session, last=True)
        self._crown(session)
        if self._ended():
            return self._job
        self._log.report(self._split(self._clock() - begun), self._model.quality)
        state, reason = session.conclusion
        return self._store.finish_job(self._job.id, self._epoch, state, reason)

    def _crown(self, session: TuningSession) -> None:
        """Let the fastest be timed once more, which decides what is best-known."""
        finals = StoredFinals(
            self._store,
            self._job,
            self._epoch,
            clock=self._clock,
            sleep=self._sleep,
            halted=self._ended,
            paused=lambda: self._job.state == "paused",
            poll_seconds=POLL_SECONDS,
        )
        crowned = finals.run(session.history)
        if crowned is not None and crowned.times:
            number = crowned.winner.candidate.number
            self._log.crowned(number, crowned.seconds, crowned.times)

    def _watched(self, session: TuningSession) -> ModelWatch:
        """The watch of the session's model, past what an earlier process has said of it."""
        watch = ModelWatch(session)
        said = self._store.last_event(self._job.id, "model")
        if said is not None:
            watch.skip(json.loads(said.data)["batch"])
        return watch

    def _beginning(self, stored: Sequence[Trial]) -> Beginning:
        """What the search began with, or begins with now: kept with the job, so that it stays the same."""
        kept = self._store.warm_start(self._job.id)
        if kept is None:
            if self._task.structure is not None:  # lookups find related workloads by it
                self._store.put_structure(self._job.workload, self._task.structure.key)
            start, hardware = Start(), self._job.hardware
            if self._job.history == "use" and hardware is not None and not stored:
                start = look_back(self._store, self._task, hardware)
            count = start.counts
            kept = self._store.put_warm_start(
                self._job.id, self._epoch, start.to_json(), count.trials, count.best
            )
            self._log.warm_start(start)
        return Beginning.of(self._task, suggested_in(self._job), Start.from_json(kept), self._store)

    def _ask(self, session: TuningSession) -> bool:
        if not session.ready or self._job.state == "paused":
            return False
        with in_time("proposing the next trials", self._job.seconds, self._elapsed()):
            batch = session.ask()
        self._add(batch)
        return True

    def _add(self, candidates: Sequence[Candidate]) -> None:
        if candidates:
            trials = new_trials(candidates, self._task.feature_schema, self._job.seed)
            self._store.add_trials(self._job.id, self._epoch, trials)

    def _tell(self, session: TuningSession) -> int:
        """Tell what was settled since, and say how many results that were."""
        waiting = {candidate.number for candidate in session.outstanding}
        if not waiting:
            return 0
        told = 0
        trials = self._store.trials(self._job.id, min(waiting) - 1)
        self._note_start(trials)
        for trial in trials:
            outcome = outcome_of(trial)
            if trial.number in waiting and outcome is not None:
                session.tell(trial.number, outcome)
                told += 1
        if told:
            self._told_at = self._clock()
        return told

    def _until_next_look(self, session: TuningSession) -> float:
        out = len(session.outstanding)
        often = POLL_SECONDS * max(1.0, out / _CHEAP)
        waited = self._clock() - self._told_at
        return min(_MOST_POLL_SECONDS, max(often, _WAITED_SHARE * waited))

    def _announce(self, session: TuningSession, *, last: bool = False) -> None:
        for found in islice(session.events, self._announced, None):
            self._log.best(found)
        self._announced = len(session.events)
        for quality in self._model.fresh(last=last):
            self._log.model(quality, self._model.quality)
        self._log.progress(self._snapshot(session), last=last)

    def _split(self, wall: float) -> TimeSplit:
        """Where the seconds went: the search's since it was begun (again), the workers' since the first."""
        for trial in stored_trials(self._store, self._job.id):
            self._watch.add("build", trial.build_seconds)
            self._watch.add("run", max(0.0, trial.wall_seconds - trial.build_seconds))
        return self._watch.split(wall)

    def _snapshot(self, session: TuningSession) -> Snapshot:
        return Snapshot.of(session, self._task, self._elapsed(), self._job.seconds)

    def _note_start(self, trials: Sequence[Trial]) -> None:
        """The time of a job begins with its first measurement, not while it waits for a worker."""
        started = [trial.started_at for trial in trials if trial.started_at is not None]
        if self._begun is None and started:
            self._begun = self._clock() - (self._store.now() - min(started))

    def _elapsed(self) -> float:
        if self._begun is None:
            return 0.0
        return max(0.0, self._clock() - self._begun - self._job.paused_seconds)

    def _out_of_time(self) -> bool:
        if self._job.seconds is None or self._job.state == "paused":
            return False
        return self._elapsed() >= self._job.seconds

    def _time_is_up(self, session: TuningSession) -> str:
        reason = f"the {self._job.seconds:g} s of the budget are used up"
        if session.told:
            return reason
        return (
            f"{reason} before a trial ended; the first was still being measured, which begins with the "
            "reference of the workload"
        )

    def _waits_for_a_worker(self) -> bool:
        """Whether nothing is to be done before a worker is there. Once something was measured its search
        goes on, since workers come back."""
        return self._job.state == "waiting" and self._begun is None

    def _ended(self) -> bool:
        """Whether somebody has ended the job or searches it anew, as of the last look at it."""
        now = self._clock()
        if now - self._job_read_at >= JOB_SECONDS:
            self._job, self._job_read_at = self._store.job(self._job.id), now
        return self._job.state in FINAL_JOB_STATES or self._job.epoch > self._epoch


def stored_trials(store: Store, job_id: str) -> list[Trial]:
    """All trials of a job, by number."""
    trials: list[Trial] = []
    while page := store.trials(job_id, trials[-1].number if trials else -1):
        trials.extend(page)
    return trials


def input_seed(seed: int) -> int:
    """The seed of the inputs that a search's candidates are checked and timed on: one for all, so that their
    reference output is computed once."""
    return seed % (1 << 32)


def new_trials(candidates: Sequence[Candidate], feature_schema: int, seed: int) -> list[NewTrial]:
    """Candidates as they are stored; `features` as little-endian float32."""
    return [
        NewTrial(
            number=candidate.number,
            batch=candidate.batch,
            candidate_key=candidate.key,
            sketch=candidate.sketch,
            trace=candidate.trace,
            features=b"" if candidate.features is None else candidate.features.astype("<f4").tobytes(),
            feature_schema=feature_schema,
            input_seed=input_seed(seed),
            predicted=None if candidate.predicted is None else float(candidate.predicted),
            origin=candidate.origin,
        )
        for candidate in candidates
    ]
