"""Tuning in one process: no server, no worker."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from rich.console import Console

from ..compiler.ir import PrimFunc
from ..compiler.space import KnobConstraint, SpaceFunction
from ..compiler.target import Target
from ..compiler.target.hardware import Hardware, detect
from ..db.store import Store
from ..measure.messages import Limits
from ..measure.runner import Runner
from .budget import Budget
from .crown import Crowned
from .errors import NotASqlStore
from .local import LocalSearch, Measurer
from .opening import open_task
from .progress import NoProgress, ProgressDisplay, TerminalProgress
from .record import TuningRecord
from .recorder import NoRecorder, Recorder, StoreRecorder
from .session import TuningSession
from .snapshot import Snapshot
from .strategies import load_strategy
from .task import TuningTask
from .time_split import Stopwatch

__all__ = ["Tuner", "TuningRecord", "tune"]


def tune(
    func: PrimFunc,
    target: str | Mapping[str, Any] | Target = "llvm",
    trials: int = 64,
    *,
    space: SpaceFunction | None = None,
    constraints: Sequence[KnobConstraint] = (),
    seconds: float | None = None,
    target_seconds: float | None = None,
    patience: int | None = None,
    store: Store | None = None,
    seed: int = 0,
    strategy: str = "evolutionary",
    progress: bool | None = None,
    observer: Callable[[Snapshot], None] | None = None,
    limits: Limits | None = None,
) -> TuningRecord:
    """Search for the fastest schedule of `func` on this machine, and measure it here.

    At most `trials` candidates are measured, within `seconds` if given, and no more of them once one takes at
    most `target_seconds`, or once `patience` in a row were not faster than the best; then the fastest few are
    timed again, which decides between them (at most 15 measurements). With a SQL `store` (what
    `tilewright.connect("sqlite:///…")` returns) every trial is recorded as it comes, and the best becomes
    known to `build(…, schedules=store)`. The same seed proposes the same where the times are the same.

    `space` is a search space of your own: a function that applies primitives and samplers
    (`sample_perfect_tile`, `sample_categorical`, `sample_compute_location`, `sample_structure`) to the
    Schedule that it is given. `constraints` are functions of its knobs by name, such as
    `lambda knobs: knobs["a"] * knobs["b"] <= 64`.

    `progress` draws a line on stderr (None: where that is a terminal); `observer` is called after each trial.

    Raises ValueError for a budget that is none, SpaceError and ScheduleError for a space that is none,
    NoLegalCandidate, UnknownStrategy, NotASqlStore, and MeasureError where nothing can be measured here.
    Candidates that fail are counted in the record; where all fail, its state is `failed` and it has no trace.
    """
    watch = Stopwatch()
    with watch.part("generate"):
        task = open_task(func, Target.parse(target), space, constraints)
    tuner = Tuner(
        task=task,
        hardware=detect(),
        trials=trials,
        seconds=seconds,
        target_seconds=target_seconds,
        patience=patience,
        store=store,
        seed=seed,
        strategy=strategy,
        display=_display(f"tuning {func.name}", progress),
        observer=observer,
        limits=limits or Limits(),
        watch=watch,
    )
    with Runner() as runner:
        return tuner.run(runner)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuner:
    """`tune` with its parts handed in."""

    task: TuningTask
    hardware: Hardware
    trials: int = 64
    seconds: float | None = None
    target_seconds: float | None = None
    patience: int | None = None
    store: Store | None = None
    seed: int = 0
    strategy: str = "evolutionary"
    display: ProgressDisplay = field(default_factory=NoProgress)
    observer: Callable[[Snapshot], None] | None = None
    limits: Limits = field(default_factory=Limits)
    clock: Callable[[], float] = time.monotonic
    watch: Stopwatch = field(default_factory=Stopwatch)

    def __post_init__(self) -> None:
        if self.store is not None and not hasattr(self.store, "settle_local"):
            raise NotASqlStore(type(self.store).__name__)
        _ = self.budget  # refused before anything is recorded
        load_strategy(self.strategy)

    @property
    def budget(self) -> Budget:
        return Budget(self.trials, self.seconds, self.target_seconds, self.patience)

    def run(self, measurer: Measurer) -> TuningRecord:
        begun = self.clock()
        task, strategy = self.task, load_strategy(self.strategy)
        says = strategy.describe()
        session = TuningSession(
            task.space,
            strategy,
            self.budget,
            target=task.target_key,
            codegen=task.codegen,
            seed=self.seed,
            defaults=task.defaults,
            watch=self.watch,
        )
        recorder = self._recorder(says)
        search = LocalSearch(
            task=task,
            session=session,
            measurer=measurer,
            recorder=recorder,
            display=self.display,
            seed=self.seed,
            seconds=self.seconds,
            limits=self.limits,
            clock=self.clock,
            observer=self.observer,
            watch=self.watch,
        )
        with _Ending(recorder, session), self.display:
            crowned = search.run()
            wall = self.clock() - begun
            split, model = self.watch.split(wall), search.model.quality
            recorder.report(split, model)
        state, reason = session.conclusion
        return TuningRecord(
            workload=task.workload_key,
            target=task.target_key,
            hardware=self.hardware.key,
            state=state,
            reason=reason,
            seconds=crowned.seconds if crowned else None,
            samples=_samples(crowned),
            best=crowned.winner if crowned else None,
            trial_count=session.told,
            failures=session.failures,
            wall_seconds=wall,
            search_seconds=search.search_seconds,
            strategy=says,
            flops=task.flops,
            job=recorder.job,
            split=split,
            model=model,
        )

    def _recorder(self, says: str) -> Recorder:
        if self.store is None:
            return NoRecorder()
        return StoreRecorder(
            self.store,
            self.task,
            hardware=self.hardware.key,
            facts=self.hardware.facts,
            budget=self.budget,
            seed=self.seed,
            strategy=self.strategy,
            says=says,
            clock=self.clock,
        )


@dataclass(frozen=True, slots=True)
class _Ending:
    """Ends the recorded job however the search ends: nobody else would."""

    recorder: Recorder
    session: TuningSession

    def __enter__(self) -> None:
        return

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.recorder.ended(*self.session.conclusion)
        elif isinstance(error, KeyboardInterrupt):
            self.recorder.ended("cancelled", f"interrupted after {self.session.told} trials")
        else:
            self.recorder.ended("failed", str(error) or type(error).__name__)


def _samples(crowned: Crowned | None) -> tuple[float, ...]:
    if crowned is None:
        return ()
    return crowned.times.get(crowned.winner.candidate.number) or crowned.winner.outcome.samples


def _display(title: str, progress: bool | None) -> ProgressDisplay:
    if progress or (progress is None and sys.stderr.isatty()):
        return TerminalProgress(title, Console(stderr=True))
    return NoProgress()
