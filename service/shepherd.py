"""Decides from the store which searches run, and ends what waits too long or cannot be searched."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from ..db.errors import Conflict, NotFound, StoreUnavailable
from ..db.fleet_records import Worker
from ..db.leadership import Alone, Leadership
from ..db.records import Job
from ..db.store import Store
from .dispatch import Dispatched, Dispatcher, DispatchError
from .hardware_choice import Needs, attached, says_the_same, waits_for
from .overtime import is_late
from .search_ends import Knew, SearchEnd, give_up, last_end, rested
from .search_process import WAITS
from .submission import facts_of
from .workloads import SpecError, WorkloadParser

log = logging.getLogger("tilewright.shepherd")

_SWEEP_EVERY = 2.0
_ASK_TO_LEAD_EVERY = 1.0
_MOST_KNOWN = 4096  # of its own workload, a search takes no more as done
_WAITS_FOR_A_PROCESS = "its search waits for a search runner to take it up"


class Shepherd:
    """Has the search of every unfinished job run by a Dispatcher. It implements `Searching`.

    All its state is in the store, so that any process may take over from another; while `leadership` is
    another's it does nothing. A search may take `patience` seconds to notice that its job has ended, and
    `slack` seconds to end once the time of its budget is up. One that dies is begun again up to `restarts`
    times without a result in between. With `sweeps` it ends expired leases, too.

    `start` begins a thread that looks at the store every `interval` seconds; `stop` ends it
    and what it dispatched here, whose jobs go on from their stored trials at the next start.
    """

    def __init__(
        self,
        store: Store,
        parser: WorkloadParser,
        dispatcher: Dispatcher,
        *,
        leadership: Leadership | None = None,
        restarts: int = 3,
        interval: float = 0.25,
        patience: float = 3.0,
        slack: float = 30.0,
        sweeps: bool = True,
        on_crash: Callable[[], None] | None = None,
    ) -> None:
        self._store = store
        self._parser = parser
        self._dispatcher = dispatcher
        self._leadership = leadership or Alone()
        self._restarts = restarts
        self._interval = interval
        self._patience = patience
        self._slack = slack
        self._sweeps = sweeps
        self._on_crash = on_crash
        self.crashed = False
        self._trouble = ""
        self._led: bool | None = None
        self._asked_at = float("-inf")
        self._unwanted_since: dict[str, float] = {}
        self._looked_ahead: set[str] = set()
        self._swept_at = float("-inf")
        self._awake = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="shepherd", daemon=True)

    def wake(self) -> None:
        self._awake.set()

    def problem(self) -> str | None:
        if self._stopping.is_set():
            return "the server is stopping"
        if not self._thread.is_alive():
            return "the shepherd of searches is not running"
        return self._dispatcher.problem()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread and what it began. May be repeated."""
        self._stopping.set()
        self._awake.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                trouble, pause = "", self._interval
                try:
                    if self._leads():
                        self._round()
                    if not self._led:
                        pause = max(pause, _ASK_TO_LEAD_EVERY)
                except StoreUnavailable as error:
                    trouble = str(error)
                if trouble != self._trouble:  # said once, not four times a second
                    log.warning("the database: %s", trouble or "answers again")
                self._trouble = trouble
                self._awake.wait(pause)
                self._awake.clear()
        finally:
            self._dispatcher.close()
            self._leadership.close()
            if not self._stopping.is_set():
                # A server that takes jobs and runs none is worse than one that is down.
                self.crashed = True
                if self._on_crash is not None:
                    self._on_crash()

    def _leads(self) -> bool:
        """Ask, and say where that has changed since."""
        self._asked_at = time.monotonic()
        led, self._led = self._led, self._leadership.leads()
        if led and not self._led:
            log.warning("this process stood still or lost its connection, and leads no more: another one may")
        elif led is False and self._led:
            log.info("this process leads from now on: it decides which searches run")
        return self._led

    def _still_leads(self) -> bool:
        """Whether a decision may follow. Asked again where that was long ago: a round may be long, and the
        process may have stood still in the middle of it."""
        if time.monotonic() - self._asked_at <= self._interval:
            return bool(self._led)
        return self._leads()

    def _round(self) -> None:
        if self._sweeps and time.monotonic() - self._swept_at > _SWEEP_EVERY:
            self._swept_at = time.monotonic()
            for lost in self._store.sweep():
                log.warning("worker %s lost lease %s; blamed: %s", lost.worker, lost.lease, lost.blamed)
        for job in self._store.overdue_jobs():
            if job.origin == "http" and self._still_leads():
                self._fail(job, f"{job.reason}, for {job.worker_wait:g} s")
        # Before the jobs are read: a search that has ended by now may have ended its job.
        searches = self._dispatcher.searches()
        jobs = [*self._store.unfinished_jobs("http"), *self._store.unfinished_jobs("outside")]
        workers = self._store.workers()
        self._looked_ahead &= {job.id for job in jobs}
        if not self._still_leads():
            return
        self._end_unwanted(searches, {job.id for job in jobs if job.state != "paused"})
        for job in jobs:
            if not self._still_leads():
                return
            try:
                self._advance(job, workers, searches.get(job.id))
            except (Conflict, NotFound) as error:
                log.info("job %s moved on: %s", job.id, error)

    def _advance(self, job: Job, workers: list[Worker], search: Dispatched | None) -> None:
        if job.state == "paused":
            return
        reason = None if job.origin == "outside" else waits_for(Needs.of(job), workers)
        if reason is not None:
            if job.state != "waiting" or not says_the_same(job.reason, reason):
                self._store.set_waiting(job.id, reason)
            elif search is None:
                self._look_ahead(job, workers)
            return
        if job.hardware is None:
            (only,) = attached(Needs.of(job).fitting(workers))
            job = self._store.bind_hardware(job.id, only)
        if job.state == "waiting":
            # Before its search begins, which may be later: it no longer waits for a worker, and its time to
            # wait for one is not running out.
            job = self._store.set_running(job.id)
        if search is None:
            self._begin(job)
        elif search.age is None:
            self._note(job, _WAITS_FOR_A_PROCESS)
        elif is_late(job, search.age, self._slack, self._store):
            self._end_late(job)
        elif job.reason == _WAITS_FOR_A_PROCESS:
            self._note(job, "")

    def _look_ahead(self, job: Job, workers: list[Worker]) -> None:
        """Have a job that waits for its first worker searched once, as far as that goes without one, if that
        may be all the way: what was measured before may be all that it asks for, and what it suggests may be
        wrong."""
        if job.epoch or job.id in self._looked_ahead or self._dispatcher.full() is not None:
            return
        self._looked_ahead.add(job.id)
        if job.hardware is None and (kind := self._answering_kind(job, workers)) is not None:
            job = self._store.bind_hardware(job.id, kind)
        if json.loads(job.spec).get("suggestions") or self._has_measured(job, 1):
            self._begin(job)

    def _answering_kind(self, job: Job, workers: list[Worker]) -> str | None:
        """The hardware of all workers that were ever attached for such a job, if they are of one kind and as
        many trials as the job asks for were measured on it."""
        kinds = {w.hardware for w in Needs.of(job).fitting(workers) if w.state != "retired"}
        if len(kinds) != 1:
            return None
        on_it = replace(job, hardware=kinds.pop())
        measured = self._has_measured(on_it, job.trials) and self._misfit(on_it) is None
        return on_it.hardware if measured else None

    def _has_measured(self, job: Job, count: int) -> bool:
        """Whether so many results are known that a search of the job takes for its own."""
        if job.hardware is None or job.history != "use" or count > _MOST_KNOWN:
            return False
        key = job.workload, job.target, job.hardware
        return len(self._store.past_trials(*key, self._parser.codegen_version(), count)) == count

    def _begin(self, job: Job) -> None:
        if (full := self._dispatcher.full()) is not None:
            self._note(job, full)
            return
        end = last_end(self._store, job.id)
        if end is not None and end.epoch == job.epoch and not end.given_up:
            if rested(job, end.status):
                if end.status != WAITS and end.knew == Knew.of(job):
                    return
            elif end.deaths > self._bound(end):
                give_up(self._store, job, end)
                self._fail(job, f"its search ended {end.how}, {end.deaths} times: {end.words}")
                return
            elif self._store.now() < end.at + 0.2 * 2**end.deaths:
                return
        if (misfit := self._misfit(job)) is not None:
            self._fail(job, misfit)
            return
        epoch = self._store.begin_search(job.id)
        try:
            self._dispatcher.dispatch(job.id, epoch)
        except DispatchError as error:
            self._fail(job, f"its search cannot be started: {error}")
            return
        log.info("job %s: search %d begins", job.id, epoch)

    def _bound(self, end: SearchEnd) -> int:
        """How many deaths in a row are not the last; of those by an error of its own one more is enough to
        tell."""
        return min(1, self._restarts) if end.by_itself else self._restarts

    def _misfit(self, job: Job) -> str | None:
        """Why the job's target is not what its request means on the hardware it is bound to, or None.

        They differ when a target left to its host was read before any worker had said what it is.
        """
        asked = json.loads(job.spec).get("target", "llvm")
        if (facts := facts_of(job.hardware, self._store)) is None:
            return None  # nobody knows yet
        try:
            meant = self._parser.target(asked, facts)
        except SpecError as error:
            return f"its target does not fit hardware {job.hardware}: {error}"
        if meant.key == job.target:
            return None
        return (
            "its target was read on the server's machine before a worker was attached, and means another on "
            f"hardware {job.hardware}: submit the job again"
        )

    def _end_late(self, job: Job) -> None:
        self._dispatcher.withdraw(job.id)
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

    def _end_unwanted(self, searches: Mapping[str, Dispatched], wanted: set[str]) -> None:
        """Searches of jobs that ended end by themselves; those that do not, and those of jobs that stay
        paused, are ended."""
        unwanted = searches.keys() - wanted
        for job in self._unwanted_since.keys() - unwanted:
            del self._unwanted_since[job]
        now = time.monotonic()
        for job in unwanted:
            if now - self._unwanted_since.setdefault(job, now) > self._patience:
                # At once, so that a job that goes on later does not count its end as a death.
                self._dispatcher.withdraw(job)
