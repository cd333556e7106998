"""Tuning several workloads with one budget."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..compiler.target import Target
from ..compiler.target.hardware import Hardware, detect
from ..db.errors import StoreError
from ..db.store import Store
from ..db.words import History
from ..measure.errors import MeasureError
from ..measure.messages import Limits
from ..measure.runner import Runner
from .budget import Budget
from .interrupts import heard
from .local import Measurer
from .opening import open_task, require_measured
from .progress import NoTasksProgress, TasksDisplay, TasksProgress
from .quota import Quota, TurnClock
from .record import TuningRecord
from .snapshot import Snapshot
from .strategies import DEFAULT, load_strategy
from .task import TuningTask
from .task_scheduler import Share, TaskScheduler, Turn
from .tasks_record import TaskResult, TasksRecord, TaskState
from .time_split import Stopwatch
from .tune import Round, Tuner, refuse_other_stores, shown
from .weighted_task import Entry, WeightedTask, named_tasks

__all__ = ["TaskResult", "TasksRecord", "TasksTuner", "WeightedTask", "tune_tasks"]

TRIALS = 64
"""Trials for each task, where nothing else is said."""


def tune_tasks(
    tasks: Sequence[Entry],
    target: str | Mapping[str, Any] | Target = "llvm",
    trials: int | None = None,
    *,
    seconds: float | None = None,
    target_seconds: float | None = None,
    patience: int | None = None,
    store: Store | None = None,
    seed: int = 0,
    strategy: str = DEFAULT,
    history: History = "use",
    progress: bool | None = None,
    observer: Callable[[str, Snapshot], None] | None = None,
    limits: Limits | None = None,
) -> TasksRecord:
    """Search for the fastest schedules of several programs on this machine, with one budget for all of them.

    A task is a program with its weight, and its target where that is another one: (func, weight[, target]) or
    WeightedTask(func=…). After a batch for each, every next batch goes to the task that promises to save the
    most time, times its weight (see task_scheduler). A task that has converged (64 trials in a row without a
    new best, unless its WeightedTask says otherwise) takes no more. The search ends after `trials` in all (64
    for each task), `seconds`, or `patience` trials in a row that brought no task a new best, once the
    weighted sum of the best times is at most `target_seconds`, or when no task wants more.

    A task that fails stops no other: where its space cannot be made its state is `space_error`, and where no
    candidate works `failed`. The store has a job for each task, and what it knows informs each as it does for
    `tune`, unless `history` is "ignore". `observer` is called with a task's name after
    each trial. The same results divide the budget in the same way.

    Raises ValueError for tasks or a budget that are none, and UnknownStrategy, NotASqlStore, StoreError and
    MeasureError, which concern all tasks.
    """
    named = named_tasks(tasks, target)
    trials = TRIALS * len(named) if trials is None else trials
    tuner = TasksTuner(
        tasks=named,
        hardware=detect(),
        budget=Budget(trials, seconds, target_seconds, patience),
        store=store,
        seed=seed,
        strategy=strategy,
        history=history,
        display=TasksProgress() if shown(progress) else NoTasksProgress(),
        observer=observer,
        limits=limits or Limits(),
    )
    with Runner() as runner:
        return tuner.run(runner)


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksTuner:
    """`tune_tasks` with its parts handed in; the tasks by their names."""

    tasks: Mapping[str, WeightedTask]
    hardware: Hardware
    budget: Budget
    store: Store | None = None
    seed: int = 0
    strategy: str = DEFAULT
    history: History = "use"
    display: TasksDisplay = field(default_factory=NoTasksProgress)
    observer: Callable[[str, Snapshot], None] | None = None
    limits: Limits = field(default_factory=Limits)
    clock: Callable[[], float] = time.monotonic
    open: Callable[[WeightedTask], TuningTask] = field(
        default=lambda task: open_task(
            task.func, require_measured(Target.parse(task.target or "llvm")), task.space, task.constraints
        )
    )

    def __post_init__(self) -> None:
        refuse_other_stores(self.store)
        load_strategy(self.strategy)
        for task in self.tasks.values():
            _ = self._limits_of(task)

    def run(self, measurer: Measurer) -> TasksRecord:
        begun = self.clock()
        quota = Quota(self.budget, self.clock)
        searches = [self._search(name, task, quota) for name, task in self.tasks.items()]
        scheduler = TaskScheduler([search.share for search in searches])
        turns: list[Turn] = []
        try:
            with self.display, heard() as interrupted:
                for number, search in enumerate(searches):
                    if search.tuner is None:
                        scheduler.over(number)
                while (turn := scheduler.next()) is not None and quota.over is None:
                    if interrupted():
                        raise KeyboardInterrupt
                    turns.append(turn)
                    search = searches[turn.task]
                    standing = search.turn(measurer)
                    if standing is None:
                        scheduler.over(turn.task)
                    else:
                        scheduler.told(turn.task, standing.trials, standing.seconds)
                    quota.reached(_weighted(searches))
                reason = quota.over or "no task wants more trials"
                for search in searches:
                    search.end(measurer, reason)
        finally:
            for search in searches:
                search.close()
        counts = Counter(turn.task for turn in turns)
        return TasksRecord(
            results=tuple(search.result(counts[number]) for number, search in enumerate(searches)),
            reason=reason,
            turns=tuple(turns),
            wall_seconds=self.clock() - begun,
        )

    def _search(self, name: str, task: WeightedTask, quota: Quota) -> _Search:
        """The search of a task; one that has failed already where its space cannot be made."""
        clock, watch = TurnClock(self.clock), Stopwatch()
        try:
            with watch.part("generate"):
                opened = self.open(task)
        except Exception as error:
            # A user's space may raise anything. It is told by name, and the other tasks go on.
            return _Search(
                name, task.weight, Share(name, task.weight), failure=("space_error", _told(name, error))
            )
        limits = self._limits_of(task)
        tuner = Tuner(
            task=opened,
            hardware=self.hardware,
            trials=limits.trials,
            seconds=limits.seconds,
            target_seconds=limits.target_seconds,
            patience=limits.patience,
            store=self.store,
            seed=self.seed,
            strategy=self.strategy,
            history=self.history,
            observer=lambda snapshot: self._watch(name, snapshot, quota),
            limits=self.limits,
            clock=clock,
            watch=watch,
            quota=quota,
        )
        return _Search(name, task.weight, _share(name, task.weight, opened), tuner, clock)

    def _limits_of(self, task: WeightedTask) -> Budget:
        trials = self.budget.trials if task.trials is None else task.trials
        return Budget(trials, task.seconds, task.target_seconds, task.patience)

    def _watch(self, name: str, snapshot: Snapshot, quota: Quota) -> None:
        self.display.show(name, snapshot, quota.used, self.budget.trials)
        if self.observer is not None:
            self.observer(name, snapshot)


@dataclass(slots=True)
class _Search:
    """The search of one task, turn by turn. What fails it is kept as its failure."""

    name: str
    weight: float
    share: Share
    tuner: Tuner | None = None
    clock: TurnClock = field(default_factory=TurnClock)
    failure: tuple[TaskState, str] | None = None
    best: float | None = None
    record: TuningRecord | None = None
    _steps: Generator[Round, None, TuningRecord] | None = None

    def turn(self, measurer: Measurer) -> Round | None:
        """Measures another batch; None where the search has ended."""
        if self.tuner is None or self.record is not None or self.failure is not None:
            return None
        if self._steps is None:
            self._steps = self.tuner.steps(measurer)
        try:
            with self.clock:
                standing = next(self._steps)
        except StopIteration as end:
            self.record = end.value
            self.best = end.value.seconds
            return None
        except (MeasureError, StoreError):
            raise  # nothing can be measured or stored, for any task
        except Exception as error:
            # The edge between tasks: what one of them raises is told by its name, and the others go on.
            self.failure = ("failed", _told(self.name, error))
            return None
        self.best = standing.seconds
        return standing

    def end(self, measurer: Measurer, reason: str) -> None:
        """Brings a search to its end, as its budget is used up; one that never had a turn has failed."""
        if self._steps is None and self.failure is None:
            self.failure = ("failed", f"it had no turn: {reason}")
        while self.turn(measurer) is not None:
            pass

    def close(self) -> None:
        """Ends a search that stands still, as when all are interrupted."""
        if self._steps is not None:
            self._steps.close()

    def result(self, turns: int) -> TaskResult:
        state, reason = self.failure or ("failed", "")
        if self.record is not None:
            state, reason = self.record.state, self.record.reason
        return TaskResult(
            name=self.name,
            weight=self.weight,
            state=state,
            reason=reason,
            record=self.record,
            turns=turns,
            space_errors=self.tuner.task.space_errors if self.tuner else {},
        )


def _share(name: str, weight: float, task: TuningTask) -> Share:
    """Tasks whose spaces have the same structures for one target come to similar speeds."""
    kind = " | ".join([task.target_key, *(sketch.name for sketch in task.space.sketches)])
    return Share(name, weight, task.flops, kind)


def _weighted(searches: Sequence[_Search]) -> float | None:
    """The weighted sum of the best times; None while a task has none."""
    times = [search.weight * search.best for search in searches if search.best is not None]
    return sum(times) if len(times) == len(searches) else None


def _told(name: str, error: Exception) -> str:
    return f"task {name!r}: {type(error).__name__}: {error}"
