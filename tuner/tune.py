"""Tuning in one process: no server, no worker."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import rfc8785
from rich.console import Console

from ..compiler.ir import PrimFunc
from ..compiler.schedule import Trace
from ..compiler.space import KnobConstraint, SpaceFunction
from ..compiler.target import Target
from ..compiler.target.hardware import Hardware, detect
from ..db.store import Store
from ..db.words import History
from ..measure.messages import Limits
from ..measure.runner import Runner
from .beginning import Beginning
from .budget import Budget
from .crown import Crowned
from .errors import NotASqlStore
from .local import LocalSearch, Measurer
from .look_back import look_back
from .opening import open_task
from .outcome import Trial
from .progress import NoProgress, ProgressDisplay, TerminalProgress
from .pruning import pruned
from .record import TuningRecord
from .recorder import NoRecorder, Recorder, StoreRecorder
from .session import TuningSession
from .snapshot import Snapshot
from .strategies import DEFAULT, load_strategy
from .suggested import suggestion_json
from .task import TuningTask
from .time_split import Stopwatch
from .warm_start import Snapshot as Start

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
    strategy: str = DEFAULT,
    history: History = "use",
    suggestions: Sequence[Trace | TuningRecord | Mapping[str, Any]] = (),
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

    With `history="use"`, what the store holds informs the search: trials of this very workload, target and
    hardware count as done (a second call with the same `trials` measures nothing), schedules that were fast
    for related workloads are among the first candidates, and the cost model begins with the trials of other
    searches. `history="ignore"` begins from nothing.

    `suggestions` are tried ahead of all others: traces, records of other searches, or
    `{"sketch": name, "knobs": {name: value}}`. A trace need not lie in the search space.

    `space` is a search space of your own: a function that applies primitives and samplers
    (`sample_perfect_tile`, `sample_categorical`, `sample_compute_location`, `sample_structure`) to the
    Schedule that it is given. `constraints` are functions of its knobs by name, such as
    `lambda knobs: knobs["a"] * knobs["b"] <= 64`.

    `progress` draws a line on stderr (None: where that is a terminal); `observer` is called after each trial.

    Raises ValueError for a budget that is none, SpaceError and ScheduleError for a space that is none,
    NoLegalCandidate, SuggestionRefused, UnknownStrategy, NotASqlStore, and MeasureError where nothing can be
    measured here. Candidates that fail are counted in the record; where all fail, its state is `failed` and
    it has no trace.
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
        history=history,
        suggested=[suggestion_json(one) for one in suggestions],
        display=_display(f"tuning {func.name}", progress),
        observer=observer,
        limits=limits or Limits(),
        watch=watch,
    )
    with Runner() as runner:
        return tuner.run(runner)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuner:
    """`tune` with its parts handed in. `racing` off: every candidate is timed in full, however slow."""

    task: TuningTask
    hardware: Hardware
    trials: int = 64
    seconds: float | None = None
    target_seconds: float | None = None
    patience: int | None = None
    store: Store | None = None
    seed: int = 0
    strategy: str = DEFAULT
    history: History = "use"
    suggested: Sequence[Mapping[str, Any]] = ()
    display: ProgressDisplay = field(default_factory=NoProgress)
    observer: Callable[[Snapshot], None] | None = None
    limits: Limits = field(default_factory=Limits)
    racing: bool = True
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
        start = self._look_back()
        beginning = Beginning.of(task, self.suggested, start, self.store)
        session = beginning.session(task, strategy, self.budget, self.seed, watch=self.watch)
        recorder = self._recorder(says, start)
        search = LocalSearch(
            task=task,
            session=session,
            measurer=measurer,
            recorder=recorder,
            display=self.display,
            seed=self.seed,
            seconds=self.seconds,
            limits=self.limits,
            racing=self.racing,
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
        winner, seconds, samples = _winner(session, crowned)
        return TuningRecord(
            workload=task.workload_key,
            target=task.target_key,
            hardware=self.hardware.key,
            state=state,
            reason=reason,
            seconds=seconds,
            samples=samples,
            best=winner,
            trial_count=session.told,
            known_count=len(session.known),
            failures=session.failures,
            wall_seconds=wall,
            search_seconds=search.search_seconds,
            strategy=says,
            flops=task.flops,
            job=recorder.job,
            pruning=pruned(task.space),
            split=split,
            model=model,
        )

    def _look_back(self) -> Start | None:
        if self.store is None or self.history == "ignore":
            return None
        workload = rfc8785.dumps(self.task.workload).decode()
        self.store.put_workload(self.task.workload_key, self.task.name, workload, self.task.script)
        return look_back(self.store, self.task, self.hardware.key)

    def _recorder(self, says: str, start: Start | None) -> Recorder:
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
            history=self.history,
            suggested=self.suggested,
            start=start,
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


def _winner(
    session: TuningSession, crowned: Crowned | None
) -> tuple[Trial | None, float | None, tuple[float, ...]]:
    """The best trial with its seconds and samples: of this search, or one that was known before."""
    known = session.best_known
    if known is None or (crowned is not None and crowned.seconds < (known.outcome.seconds or 0.0)):
        return (crowned.winner, crowned.seconds, _samples(crowned)) if crowned else (None, None, ())
    return known, known.outcome.seconds, known.outcome.samples


def _samples(crowned: Crowned | None) -> tuple[float, ...]:
    if crowned is None:
        return ()
    return crowned.times.get(crowned.winner.candidate.number) or crowned.winner.outcome.samples


def _display(title: str, progress: bool | None) -> ProgressDisplay:
    if progress or (progress is None and sys.stderr.isatty()):
        return TerminalProgress(title, Console(stderr=True))
    return NoProgress()
