"""Tuning in one process: no server, no worker."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..compiler.ir import PrimFunc
from ..compiler.schedule import Trace
from ..compiler.space import KnobConstraint, SpaceFunction
from ..compiler.target import Target
from ..compiler.target.hardware import Hardware, detect
from ..db.store import Store
from ..db.words import HISTORIES, History, JobState
from ..measure.messages import Limits
from ..measure.runner import Runner
from .beginning import Beginning, suggested_in
from .budget import Budget
from .crown import Crowned
from .ending import STOPPED, Ending
from .errors import NotASqlStore
from .interrupts import heard
from .local import LocalSearch, Measurer
from .look_back import look_back
from .opening import budget_of, open_task, require_measured
from .outcome import Trial
from .progress import NoProgress, ProgressDisplay, TerminalProgress
from .pruning import pruned
from .quota import Quota
from .record import TuningRecord
from .recorder import NoRecorder, Recorder, StoreRecorder
from .replay import resume as go_on
from .session import TuningSession, require_seed
from .share import trials_of_share
from .snapshot import Snapshot
from .standing import enlarged, name_of, standing_job
from .strategies import DEFAULT, SearchStrategy, load_strategy
from .suggested import suggestion_json
from .task import TuningTask
from .time_split import Stopwatch
from .warm_start import Snapshot as Start

__all__ = ["Round", "Tuner", "TuningRecord", "display_of", "refuse_other_stores", "shown", "tune"]


def tune(
    func: PrimFunc,
    target: str | Mapping[str, Any] | Target = "llvm",
    trials: int = 64,
    *,
    share: float | None = None,
    space: SpaceFunction | None = None,
    constraints: Sequence[KnobConstraint] = (),
    seconds: float | None = None,
    target_seconds: float | None = None,
    patience: int | None = None,
    store: Store | None = None,
    resume: bool = False,
    seed: int = 0,
    strategy: str = DEFAULT,
    history: History = "use",
    suggestions: Sequence[Trace | TuningRecord | Mapping[str, Any]] = (),
    progress: bool | None = None,
    observer: Callable[[Snapshot], None] | None = None,
    limits: Limits | None = None,
    racing: bool = True,
) -> TuningRecord:
    """Search for the fastest schedule of `func` on this machine, and measure it here.

    At most `trials` candidates are measured, within `seconds` if given, and no more of them once one takes at
    most `target_seconds`, or once `patience` in a row were not faster than the best; then the fastest few are
    timed again, which decides between them (at most 15 measurements; 20 where the store knows another
    schedule as best, which is timed in turn with them and stands unless it loses). `share` (above 0, at most
    1) asks for that part of all legal schedules in place of `trials`, where these can be counted. With a SQL
    `store` (what `tilewright.connect("sqlite:///…")` returns) every trial is recorded as it comes, and the
    best becomes known to `build(…, schedules=store)`. The same seed proposes the same where the times are the
    same.

    With `history="use"`, what the store holds informs the search: trials of this very workload, target and
    hardware count as done (a second call with the same `trials` measures nothing), schedules that were fast
    for related workloads are among the first candidates, and the cost model begins with the trials of other
    searches. `history="ignore"` begins from nothing.

    `suggestions` are tried ahead of all others: traces, records of other searches, or
    `{"sketch": name, "knobs": {name: value}}`. A trace need not lie in the search space.

    A search that was interrupted or killed leaves a job in the store that stands still, as one does that was
    paused. With `resume`, the newest such job of the same workload, target, hardware, seed and strategy goes
    on from its trials, with its own history and suggestions and with this budget where that is the larger
    one, and comes to what it would have come to without the break; a new search begins where there is none.
    See `resume` for a job by its id.

    `space` is a search space of your own: a function that applies primitives and samplers
    (`sample_perfect_tile`, `sample_categorical`, `sample_compute_location`, `sample_structure`) to the
    Schedule that it is given. `constraints` are functions of its knobs by name, such as
    `lambda knobs: knobs["a"] * knobs["b"] <= 64`.

    A candidate that is clearly slower than the best so far is stopped after its first samples, unless
    `racing` is off.

    `progress` draws a line on stderr (None: where that is a terminal); `observer` is called after each trial.

    Raises ValueError for a budget that is none, SpaceError and ScheduleError for a space that is none,
    NoLegalCandidate, SuggestionRefused, UnknownStrategy, NotASqlStore, and MeasureError where nothing can be
    measured here. Candidates that fail are counted in the record; where all fail, its state is `failed` and
    it has no trace.
    """
    watch = Stopwatch()
    with watch.part("generate"):
        task = open_task(func, require_measured(Target.parse(target)), space, constraints)
    if share is not None:
        trials = trials_of_share(task.space, share)
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
        history=history,
        suggested=suggested_in(standing) if standing else [suggestion_json(one) for one in suggestions],
        display=display_of(f"tuning {func.name}", progress),
        observer=observer,
        limits=limits or Limits(),
        racing=racing,
        watch=watch,
    )
    with Runner() as runner:
        return tuner.run(runner)


@dataclass(frozen=True, slots=True)
class Round:
    """Where a search stands after a batch: trials, and the best seconds so far."""

    trials: int
    seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuner:
    """`tune` with its parts handed in. `resumes` is the id of a job of the store that is to go on, whose
    budget, seed, strategy and suggestions these must be; `space_name` names a space of the user's own.
    `racing` off: every candidate is timed in full, however slow."""

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
    strategy: str = DEFAULT
    history: History = "use"
    suggested: Sequence[Mapping[str, Any]] = ()
    display: ProgressDisplay = field(default_factory=NoProgress)
    observer: Callable[[Snapshot], None] | None = None
    limits: Limits = field(default_factory=Limits)
    racing: bool = True
    clock: Callable[[], float] = time.monotonic
    watch: Stopwatch = field(default_factory=Stopwatch)
    quota: Quota | None = None

    def __post_init__(self) -> None:
        refuse_other_stores(self.store)
        _ = self.budget  # refused before anything is recorded
        require_seed(self.seed)
        load_strategy(self.strategy)
        if self.history not in HISTORIES:
            raise ValueError(f"history is {' or '.join(HISTORIES)}, not {self.history!r}")

    @property
    def budget(self) -> Budget:
        return Budget(self.trials, self.seconds, self.target_seconds, self.patience)

    def run(self, measurer: Measurer) -> TuningRecord:
        steps = self.steps(measurer)
        with heard() as interrupted:
            while True:
                try:
                    steps.throw(KeyboardInterrupt()) if interrupted() else next(steps)
                except StopIteration as end:
                    record: TuningRecord = end.value
                    return record

    def steps(self, measurer: Measurer) -> Generator[Round, None, TuningRecord]:
        """The same batch by batch; another search may have its turn after each. Closed early, it ends as one
        that was interrupted."""
        begun = self.clock()
        task, strategy = self.task, load_strategy(self.strategy)
        says = strategy.describe()
        Beginning.of(task, self.suggested)  # refused before anything is recorded
        recorder = self._recorder()
        session, spent = self._session(strategy, recorder)
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
            racing=self.racing,
            clock=self.clock,
            observer=self.observer,
            watch=self.watch,
            quota=self.quota,
        )
        state: JobState
        try:
            with Ending(recorder, session), self.display:
                for _ in search.rounds():
                    yield Round(session.told, session.best.outcome.seconds if session.best else None)
                crowned = search.crown()
                wall = self.clock() - begun
                split, model = self.watch.split(wall), search.model.quality
                recorder.report(split, model)
            state, reason = session.conclusion
        except STOPPED:
            crowned = Crowned(session.best) if session.best else None
            wall = self.clock() - begun
            split, model = self.watch.split(wall), search.model.quality
            state, reason = recorder.stands()
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
            space_errors=task.space_errors,
        )

    def _session(self, strategy: SearchStrategy, recorder: Recorder) -> tuple[TuningSession, float]:
        """The session, as far as an earlier process has come, and the seconds that it took."""
        task = self.task
        with Ending(recorder):
            stored, spent = recorder.left()
            beginning = Beginning.of(task, self.suggested, recorder.start(self._look_back), self.store)
            session = go_on(
                lambda adopted: beginning.session(
                    task, strategy, self.budget, self.seed, adopted, watch=self.watch
                ),
                stored,
                task,
            )
            recorder.begun(strategy.describe(), len(stored))
        return session, spent

    def _look_back(self) -> Start:
        assert self.store is not None, "without a store nothing is looked back at"
        return look_back(self.store, self.task, self.hardware.key)

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
            history=self.history,
            suggested=self.suggested,
        )


def refuse_other_stores(store: Store | None) -> None:
    """Raises NotASqlStore for what trials cannot be recorded into."""
    if store is not None and not hasattr(store, "settle_local"):
        raise NotASqlStore(type(store).__name__)


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


def display_of(title: str, progress: bool | None) -> ProgressDisplay:
    """A line on stderr if `progress` says so; None: where that is a terminal."""
    return TerminalProgress(title) if shown(progress) else NoProgress()


def shown(progress: bool | None) -> bool:
    return sys.stderr.isatty() if progress is None else progress
