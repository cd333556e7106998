"""A search that measures in this very process's runner."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import Protocol

from ..measure.messages import Limits, MeasureInput, MeasureResult
from .candidate import Candidate
from .crown import Crowned, Crowning
from .model_watch import ModelWatch
from .outcome import Outcome, Trial
from .progress import ProgressDisplay
from .quota import Quota
from .recorder import Recorder
from .search import input_seed
from .session import TuningSession
from .snapshot import Snapshot
from .task import TuningTask
from .time_split import Stopwatch

__all__ = ["LocalSearch", "Measurer"]


class Measurer(Protocol):
    """What measures candidates, one at a time, and may build the next one meanwhile: measure.Runner."""

    def measure(self, item: MeasureInput, ahead: MeasureInput | None = None, /) -> MeasureResult: ...


@dataclass(slots=True)
class LocalSearch:
    """Asks a session, measures, tells it, and crowns the best in the end. `seconds` bounds the search, of
    which `spent` are over before this process, and `quota` this one and others together; what the final
    rounds take comes after it. A session that goes on where an earlier process has left off has candidates
    that are not measured yet: they come first. `racing`: candidates are stopped early that are clearly slower
    than the best so far.

    While one batch is measured (in another process), the next one is thought of in a thread, where there is a
    CPU to do it on beside those that the kernels' threads take; by the session's rule this changes no result.
    """

    task: TuningTask
    session: TuningSession
    measurer: Measurer
    recorder: Recorder
    display: ProgressDisplay
    seed: int = 0
    seconds: float | None = None
    spent: float = 0.0
    limits: Limits = field(default_factory=Limits)
    crowning: Crowning = field(default_factory=Crowning)
    racing: bool = True
    clock: Callable[[], float] = time.monotonic
    observer: Callable[[Snapshot], None] | None = None
    watch: Stopwatch = field(default_factory=Stopwatch)
    quota: Quota | None = None
    search_seconds: float = 0.0
    model: ModelWatch = field(init=False)
    _begun: float = 0.0
    _announced: int = 0

    def __post_init__(self) -> None:
        self.model = ModelWatch(self.session)
        for _ in self.model.fresh():
            pass  # told before this process
        self._announced = len(self.session.events)

    def run(self) -> Crowned | None:
        """The best of the search, None where no trial gave a time. Raises NoLegalCandidate."""
        for _ in self.rounds():
            pass
        return self.crown()

    def rounds(self) -> Iterator[None]:
        """Measures batch by batch; another search may have its turn between two. Raises NoLegalCandidate."""
        self._begun = self.clock() - self.spent
        has_cpu = _cpus() > self.task.target.get("num-threads", 1)
        with ThreadPoolExecutor(1, thread_name_prefix="tilewright-ask") as thread:
            left = [list(batch) for _, batch in groupby(self.session.outstanding, lambda c: c.batch)]
            batch = left.pop(0) if left else self._ask()
            while batch:
                self.recorder.asked(batch)
                ahead = thread.submit(self._ask) if has_cpu and not left else None
                self._measure_all(batch, ahead)
                batch = left.pop(0) if left else self._next(ahead)
                if batch:
                    yield
                    batch = [] if self._over() else batch
        self._announce(last=True)
        self._watch(last=True)

    def _ask(self) -> list[Candidate]:
        begun, loading = time.thread_time(), self.watch.spent("load")
        try:
            return self.session.ask()
        finally:
            loading = self.watch.spent("load") - loading
            self.search_seconds += time.thread_time() - begun - loading

    def _next(self, ahead: Future[list[Candidate]] | None) -> list[Candidate]:
        batch = self._ask() if ahead is None else ahead.result()
        return [] if self._over() else batch

    def _over(self) -> bool:
        """Whether nothing more is to be measured: the time is used up, or the session has had enough."""
        if self.quota is not None and (reason := self.quota.over) is not None:
            self.session.close(reason)
            return True
        if self.seconds is not None and self._elapsed() >= self.seconds:
            when = "" if self.session.told else " before a trial was measured"
            self.session.close(f"the {self.seconds:g} s of the budget are used up{when}")
            return True
        return self.session.finished

    def _measure_all(self, batch: list[Candidate], ahead: Future[list[Candidate]] | None) -> None:
        for number, candidate in enumerate(batch, 1):
            if self._over():
                return
            best = self.session.best
            result = self._measure(
                candidate,
                best.outcome.seconds if best and self.racing else None,
                next(iter(batch[number:] or _asked(ahead)), None),
            )
            self.recorder.settled(candidate, result)
            self.session.tell(candidate.number, Outcome.of(result))
            if self.quota is not None:
                self.quota.took(better=len(self.session.events) > self._announced)
            self._announce()
            self._watch()

    def _announce(self, *, last: bool = False) -> None:
        for found in islice(self.session.events, self._announced, None):
            self.recorder.best(found)
        self._announced = len(self.session.events)
        for quality in self.model.fresh(last=last):
            self.recorder.model(quality, self.model.quality)

    def _measure(
        self, candidate: Candidate, best_seconds: float | None, ahead: Candidate | None = None
    ) -> MeasureResult:
        next_one = None if ahead is None else self._item(ahead, best_seconds)
        result = self.measurer.measure(self._item(candidate, best_seconds), next_one)
        self.watch.add("build", result.build_seconds)
        self.watch.add("run", max(0.0, result.wall_seconds - result.build_seconds))
        return result

    def _item(self, candidate: Candidate, best_seconds: float | None) -> MeasureInput:
        return MeasureInput(
            item=f"trial-{candidate.number}",
            attempt=1,
            workload=self.task.workload,
            target=self.task.target,
            trace=json.loads(candidate.trace),
            input_seed=input_seed(self.seed),
            limits=self.limits,
            best_seconds=best_seconds,
        )

    def crown(self) -> Crowned | None:
        """Times the fastest once more, and in turn with them what the store knows as best; the best of the
        search's own, None where no trial gave a time."""
        history = self.session.history
        rivals = self.recorder.rivals([trial.candidate for trial in history])
        crowned = self.crowning.crown(history, self._measure_again, rivals)
        if crowned is not None:
            self.recorder.crowned(crowned)
        return crowned

    def _measure_again(self, trial: Trial) -> Outcome:
        return Outcome.of(self._measure(trial.candidate, None))

    def _elapsed(self) -> float:
        return self.clock() - self._begun

    def _watch(self, *, last: bool = False) -> None:
        snapshot = Snapshot.of(self.session, self.task, self._elapsed(), self.seconds)
        self.display.show(snapshot)
        self.recorder.progress(snapshot, last=last)
        if self.observer is not None:
            self.observer(snapshot)


def _asked(ahead: Future[list[Candidate]] | None) -> list[Candidate]:
    """The batch that was thought of ahead, if it is there already."""
    return [] if ahead is None or not ahead.done() or ahead.exception() else ahead.result()


def _cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
