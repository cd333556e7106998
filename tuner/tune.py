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
from ..db.errors import JobOver, StaleSearch
from ..db.store import Store
from ..db.words import JobState
from ..measure.messages import Limits
from ..measure.runner import Runner
from .budget import Budget
from .candidate import Candidate
from .crown import Crowned
from .errors import JobStopped, NotASqlStore
from .local import LocalSearch, Measurer
from .opening import budget_of, open_task
from .progress import NoProgress, ProgressDisplay, TerminalProgress
from .record import TuningRecord
from .recorder import NoRecorder, Recorder, StoreRecorder
from .replay import resume as go_on
from .session import TuningSession
from .snapshot import Snapshot
from .standing import enlarged, name_of, standing_job
from .strategies import load_strategy
from .task import TuningTask
from .time_split import Stopwatch

__all__ = ["Tuner", "TuningRecord", "display_of", "tune"]

_STOPPED = (JobStopped, JobOver, StaleSearch)
"""Somebody else has paused or ended the job, or searches it anew."""


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
    resume: bool = False,
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

    A search that was interrupted or killed leaves a job in the store that stands still, as one does that was
    paused. With `resume`, the newest such job of the same workload, target, hardware, seed and strategy goes
    on from its trials, with this budget where that is the larger one, and comes to what it would have come to
    without the break; a new search begins where there is none. See `resume` for a job by its id.

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
    hardware, name = detect(), name_of(space)
    budget = Budget(trials, seconds, target_seconds, patience)
    standing = None
    if resume and store is not None:
        standing = standing_job(store, task, hardware.key, seed, strategy, name)
    if store is not None and standing is not None:
        budget = budget_of(enlarged(store, standing, budget))
    tuner = Tuner(
        task=task,
        hardware=hardware,
        trials=budget.trials,
        seconds=budget.seconds,
        target_seconds=budget.target_seconds,
        patience=budget.patience,
        store=store,
        resumes=standing.id if standing else None,
        space_name=name,
        seed=seed,
        strategy=strategy,
        display=display_of(f"tuning {func.name}", progress),
        observer=observer,
        limits=limits or Limits(),
        watch=watch,
    )
    with Runner() as runner:
        return tuner.run(runner)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuner:
    """`tune` with its parts handed in. `resumes` is the id of a job of the store that is to go on, whose
    budget, seed and strategy these must be; `space_name` names a space of the user's own."""

    task: TuningTask
    hardware: Hardware
    trials: int = 64
    seconds: float | None = None
    target_seconds: float | None = None
    patience: int | None = None
    store: Store | None = None
    resumes: str | None = None
    space_name: str = ""
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
        recorder = self._recorder()
        stored, spent = recorder.left()

        def begin(adopted: Sequence[Candidate]) -> TuningSession:
            return TuningSession(
                task.space,
                strategy,
                self.budget,
                target=task.target_key,
                codegen=task.codegen,
                seed=self.seed,
                defaults=task.defaults,
                adopted=adopted,
                watch=self.watch,
            )

        session = go_on(begin, stored, task.feature_schema)
        recorder.begun(says, len(stored))
        search = LocalSearch(
            task=task,
            session=session,
            measurer=measurer,
            recorder=recorder,
            display=self.display,
            seed=self.seed,
            seconds=self.seconds,
            spent=spent,
            limits=self.limits,
            clock=self.clock,
            observer=self.observer,
            watch=self.watch,
        )
        state: JobState
        try:
            with _Ending(recorder, session), self.display:
                crowned = search.run()
                wall = self.clock() - begun
                split, model = self.watch.split(wall), search.model.quality
                recorder.report(split, model)
            state, reason = session.conclusion
        except _STOPPED:
            crowned = Crowned(session.best) if session.best else None
            wall = self.clock() - begun
            split, model = self.watch.split(wall), search.model.quality
            state, reason = recorder.stands()
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

    def _recorder(self) -> Recorder:
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
            clock=self.clock,
            space=self.space_name,
            resumes=self.resumes,
        )


@dataclass(frozen=True, slots=True)
class _Ending:
    """Ends or pauses the recorded job however the search ends: nobody else would."""

    recorder: Recorder
    session: TuningSession

    def __enter__(self) -> None:
        return

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.recorder.ended(*self.session.conclusion)
        elif isinstance(error, _STOPPED):
            return  # it is not this search that says how the job stands
        elif isinstance(error, KeyboardInterrupt):
            self.recorder.paused(f"interrupted after {self.session.told} trials: resume the job to go on")
        else:
            self.recorder.ended("failed", str(error) or type(error).__name__)


def _samples(crowned: Crowned | None) -> tuple[float, ...]:
    if crowned is None:
        return ()
    return crowned.times.get(crowned.winner.candidate.number) or crowned.winner.outcome.samples


def display_of(title: str, progress: bool | None) -> ProgressDisplay:
    """A line on stderr if `progress` says so; None: where that is a terminal."""
    if progress or (progress is None and sys.stderr.isatty()):
        return TerminalProgress(title, Console(stderr=True))
    return NoProgress()
