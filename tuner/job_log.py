"""What a search writes into the events of its job."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Protocol

from .model_quality import ModelQuality, RoundQuality
from .pruning import pruned
from .session import BestFound
from .snapshot import Snapshot
from .task import TuningTask
from .time_split import TimeSplit
from .warm_start import Snapshot as Start

__all__ = ["EventStore", "JobLog"]

PROGRESS_SECONDS = 0.5
"""The least time between two `progress` events: a watcher sees a moving line, the store little writing."""


class EventStore(Protocol):
    def add_event(self, job_id: str, kind: str, data: str, epoch: int | None = None) -> int: ...


class JobLog:
    """The events of one job:

    - `search` when a process begins to search: {strategy (with its cost model), sketches, space (for each
      sketch, what its constraints rule out: see Pruning), resumed_trials};
    - `warm_start` when it is first begun: what it knows from earlier searches, see Snapshot of warm_start;
    - `best` for each improvement: {number, seconds, gflops, sketch};
    - `progress` at most every half second: see Snapshot;
    - `model` for each batch that was predicted and is all told: see RoundQuality, and `overall`: see
      ModelQuality;
    - `crowned` when the fastest were timed once more: {number, seconds, contenders};
    - `report` in the end: {seconds (by what they were spent on: see TimeSplit), model (see ModelQuality)};
    - `space_error` for each rule that failed to make its part of the space: {rule, message}.

    The `state` and `extended` events are the store's own. Once a newer search than that of `epoch` has begun,
    the store raises StaleSearch.
    """

    def __init__(
        self, store: EventStore, job_id: str, epoch: int, task: TuningTask, clock: Callable[[], float]
    ) -> None:
        self._store = store
        self._job = job_id
        self._epoch = epoch
        self._task = task
        self._clock = clock
        self._written: Snapshot | None = None
        self._written_at = float("-inf")

    def search(self, strategy: str, resumed: int) -> None:
        sketches = [sketch.name for sketch in self._task.space.sketches]
        space = [sketch.to_json() for sketch in pruned(self._task.space)]
        data = {"strategy": strategy, "sketches": sketches, "space": space, "resumed_trials": resumed}
        self._write("search", data)

    def warm_start(self, start: Start) -> None:
        self._write("warm_start", start.says())

        for rule, message in self._task.space_errors.items():
            self._write("space_error", {"rule": rule, "message": message})

    def best(self, found: BestFound) -> None:
        self._write(
            "best",
            {
                "number": found.number,
                "seconds": found.seconds,
                "gflops": self._task.gflops(found.seconds),
                "sketch": found.sketch,
            },
        )

    def progress(self, snapshot: Snapshot, *, last: bool = False) -> None:
        """Write it if something was done since the last one and that is long enough ago; the last one of a
        search is always written."""
        before = self._written
        moved = before is None or (before.done, before.asked) != (snapshot.done, snapshot.asked)
        now = self._clock()
        if last or (moved and now - self._written_at >= PROGRESS_SECONDS):
            self._written, self._written_at = snapshot, now
            self._write("progress", snapshot.to_json())

    def model(self, quality: RoundQuality, overall: ModelQuality) -> None:
        self._write("model", {**quality.to_json(), "overall": overall.to_json()})

    def report(self, split: TimeSplit, model: ModelQuality) -> None:
        self._write("report", {"seconds": split.to_json(), "model": model.to_json()})

    def crowned(self, number: int, seconds: float, contenders: dict[int, tuple[float, ...]]) -> None:
        times = [{"number": trial, "seconds": list(taken)} for trial, taken in contenders.items()]
        self._write("crowned", {"number": number, "seconds": seconds, "contenders": times})

    def _write(self, kind: str, data: dict[str, Any]) -> None:
        self._store.add_event(self._job, kind, json.dumps(data, allow_nan=False), self._epoch)
