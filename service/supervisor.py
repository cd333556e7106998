"""Runs the search of every unfinished job in a child process, and ends what waits too long or cannot be
searched."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from ..db.errors import Conflict, NotFound, StoreUnavailable
from ..db.fleet_records import Worker
from ..db.records import Job
from ..db.store import Store
from ..db.words import FINAL_JOB_STATES
from .hardware_choice import attached, waits_for
from .overtime import is_late
from .search_process import Command, SearchProcess
from .submission import facts_of
from .workloads import SpecError, WorkloadParser

log = logging.getLogger("tilewright.supervisor")

_SWEEP_EVERY = 2.0


@dataclass(slots=True)
class _Search:
    """The child of a job, `begun` at this time under this `epoch`; `deaths` counts how often it died since
    the job had `done` results; `again_at` is when it may start again. `rests`: the job is measured outside,
    and has proposed all that it can while it `knew` so many results of so many trials."""

    process: SearchProcess | None = None
    epoch: int = 0
    begun: float = 0.0
    deaths: int = 0
    done: int = 0
    again_at: float = 0.0
    knew: tuple[int, int] = (-1, -1)
    rests: bool = False
    unwanted_since: float | None = None


class Supervisor:
    """A Dispatcher. A child may take `patience` seconds to notice that its job has ended, and `slack` seconds
    to end its search once the time of its budget is up.

    `start` begins a thread that looks at the store every `interval` seconds; `stop` ends it
    and the children, whose jobs go on from their stored trials at the next start. All its state is in the
    store."""

    def __init__(
        self,
        store: Store,
        parser: WorkloadParser,
        command: Command,
        *,
        max_searches: int = 4,
        restarts: int = 3,
        interval: float = 0.25,
        patience: float = 3.0,
        slack: float = 30.0,
        on_crash: Callable[[], None] | None = None,
    ) -> None:
        self._store = store
        self._parser = parser
        self._command = command
        self._max_searches = max_searches
        self._restarts = restarts
        self._interval = interval
        self._patience = patience
        self._slack = slack
        self._on_crash = on_crash
        self.crashed = False
        self._trouble = ""
        self._searches: dict[str, _Search] = {}
        self._swept_at = float("-inf")
        self._awake = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="supervisor", daemon=True)

    def wake(self) -> None:
        self._awake.set()

    def problem(self) -> str | None:
        if self._stopping.is_set():
            return "the server is stopping"
        return None if self._thread.is_alive() else "the supervisor of searches is not running"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread and the children. May be repeated."""
        self._stopping.set()
        self._awake.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                trouble = ""
                try:
                    self._round()
                except StoreUnavailable as error:
                    trouble = str(error)
                if trouble != self._trouble:  # said once, not four times a second
                    log.warning("the database: %s", trouble or "answers again")
                self._trouble = trouble
                self._awake.wait(self._interval)
                self._awake.clear()
        finally:
            for search in self._searches.values():
                if search.process is not None:
                    search.process.close()
            if not self._stopping.is_set():
                # A server that takes jobs and runs none is worse than one that is down.
                self.crashed = True
                if self._on_crash is not None:
                    self._on_crash()

    def _round(self) -> None:
        if time.monotonic() - self._swept_at > _SWEEP_EVERY:
            self._swept_at = time.monotonic()
            for lost in self._store.sweep():
                log.warning("worker %s lost lease %s; blamed: %s", lost.worker, lost.lease, lost.blamed)
        for job in self._store.overdue_jobs():
            if job.origin == "http":
                self._fail(job, f"{job.reason}, for {job.worker_wait:g} s")
        jobs = [*self._store.unfinished_jobs("http"), *self._store.unfinished_jobs("outside")]
        workers = self._store.workers()
        self._end_unwanted({job.id for job in jobs if job.state != "paused"})
        for job in jobs:
            try:
                self._advance(job, workers)
            except (Conflict, NotFound) as error:
                log.info("job %s moved on: %s", job.id, error)

    def _advance(self, job: Job, workers: list[Worker]) -> None:
        if job.state == "paused":
            return
        reason = None if job.origin == "outside" else waits_for(job.hardware, workers)
        if reason is not None:
            if (job.state, job.reason) != ("waiting", reason):
                self._store.set_waiting(job.id, reason)
            return
        if job.hardware is None:
            (only,) = attached(workers)
            job = self._store.bind_hardware(job.id, only)
        if job.state == "waiting":
            # Before its search begins, which may be later: it no longer waits for a worker, and its time to
            # wait for one is not running out.
            job = self._store.set_running(job.id)
        search = self._searches.setdefault(job.id, _Search())
        if search.process is None:
            if not search.rests or search.knew != (job.done, job.trials):
                self._begin(job, search)
        elif search.process.ended() is not None:
            self._bury(job, search)
        elif is_late(job, time.monotonic() - search.begun, self._slack, self._store):
            self._end_late(job, search)

    def _begin(self, job: Job, search: _Search) -> None:
        running = sum(1 for s in self._searches.values() if s.process is not None)
        if running >= self._max_searches:
            self._note(job, f"waits for one of the {self._max_searches} searches that run at a time to end")
            return
        if time.monotonic() < search.again_at:
            return
        if (misfit := self._misfit(job)) is not None:
            self._fail(job, misfit)
            return
        epoch = self._store.begin_search(job.id)
        try:
            search.process = SearchProcess(self._command(job.id, epoch))
        except OSError as error:
            self._fail(job, f"its search cannot be started: {error}")
            return
        search.begun, search.epoch = time.monotonic(), epoch
        search.knew, search.rests = (job.done, job.trials), False
        log.info("job %s: search %d runs as process %d", job.id, epoch, search.process.pid)

    def _misfit(self, job: Job) -> str | None:
        """Why the job's target is not what its request means on the hardware it is bound to, or None.

        They differ when a target left to its host was read before any worker had said what it is.
        """
        asked = json.loads(job.spec).get("target", "llvm")
        try:
            meant = self._parser.target(asked, facts_of(job.hardware, self._store))
        except SpecError as error:
            return f"its target does not fit hardware {job.hardware}: {error}"
        if meant.key == job.target:
            return None
        return (
            "its target was read on the server's machine before a worker was attached, and means another on "
            f"hardware {job.hardware}: submit the job again"
        )

    def _bury(self, job: Job, search: _Search) -> None:
        """Start a child that died again a little later, or fail its job with the child's last words."""
        assert search.process is not None
        status = search.process.ended()
        assert status is not None
        last_words = search.process.last_line()
        search.process = None
        job = self._store.job(job.id)
        if job.state in FINAL_JOB_STATES or job.epoch != search.epoch:
            return  # it was not its job any more: ended, or extended and to be searched anew
        if status == 0 and job.origin == "outside":
            search.rests = True
            return
        search.deaths = 1 if job.done > search.done else search.deaths + 1
        search.done = job.done
        how = f"by signal {-status}" if status < 0 else f"with status {status}"
        log.warning("job %s: its search ended %s: %s", job.id, how, last_words)
        # What ends by an error of its own ends so again: once more is enough to tell.
        bound = self._restarts if status < 0 else min(1, self._restarts)
        if search.deaths > bound:
            self._fail(job, f"its search ended {how}, {search.deaths} times: {last_words}")
        else:
            search.again_at = time.monotonic() + 0.2 * 2**search.deaths

    def _end_late(self, job: Job, search: _Search) -> None:
        assert search.process is not None
        search.process.close()
        search.process = None
        found = bool(self._store.top_trials(job.id, 1))
        reason = (
            f"the {job.seconds:g} s of the budget are used up; its search did not end within {self._slack:g} "
            f"s more and was stopped; {'what it found is kept' if found else 'nothing was found'}"
        )
        self._store.finish_job(job.id, None, "completed" if found else "failed", reason)
        log.warning("job %s: %s", job.id, reason)

    def _note(self, job: Job, reason: str) -> None:
        if job.reason != reason:
            self._store.note(job.id, reason)

    def _fail(self, job: Job, reason: str) -> None:
        self._store.finish_job(job.id, None, "failed", reason)
        log.warning("job %s failed: %s", job.id, reason)

    def _end_unwanted(self, wanted: set[str]) -> None:
        """Children of jobs that ended end by themselves; those that do not, and those of jobs that stay
        paused, are ended."""
        for job, search in list(self._searches.items()):
            if job in wanted:
                search.unwanted_since = None
                continue
            if search.process is None or search.process.ended() is not None:
                del self._searches[job]
                continue
            now = time.monotonic()
            if search.unwanted_since is None:
                search.unwanted_since = now
            elif now - search.unwanted_since > self._patience:
                # At once, so that a job that goes on later does not count its end as a death.
                search.process.close()
                del self._searches[job]
