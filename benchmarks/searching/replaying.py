"""Searches on recorded spaces, through the session and the loop that `tilewright.tune` uses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing import Pool

import numpy as np

from tilewright.tuner.cost_model import CostModel, Objective, TrainingSet, XGBoost
from tilewright.tuner.local import LocalSearch
from tilewright.tuner.progress import NoProgress
from tilewright.tuner.recorded import RecordedSpace, ReplayDevice
from tilewright.tuner.recorder import NoRecorder
from tilewright.tuner.session import TuningSession
from tilewright.tuner.strategies import SearchStrategy, load_strategy
from tilewright.tuner.strategies.guided import Guided

__all__ = [
    "ABLATIONS",
    "Contestant",
    "Curve",
    "Curves",
    "curves",
    "looked_up",
    "named",
    "of_objective",
    "search",
]

Curve = list[float | None]
"""The best milliseconds after 1, 2, … evaluations, None before the first success."""

Curves = list[Curve]
"""One for each seed."""


class NoModel:
    """Says the same of every point, so that chance decides where a model would."""

    name = "none"

    def update(self, training: TrainingSet) -> None:
        return

    def extend(self, training: TrainingSet, new: int) -> None:
        return

    def predict(self, features: np.ndarray) -> np.ndarray:
        return np.zeros(len(features), dtype=np.float32)

    def predict_each(self, features: np.ndarray) -> np.ndarray:
        return self.predict(features)[None, :]


@dataclass(frozen=True)
class Contestant:
    """A strategy of ours, by what makes it. `history`: a space whose table the cost model learns from, and of
    which the `transferred` fastest configurations are tried first."""

    name: str
    make: Callable[[], SearchStrategy]
    history: RecordedSpace | None = None
    transferred: int = 0


def named(name: str) -> Contestant:
    return Contestant(name, partial(load_strategy, name))


def _of_objective(objective: Objective) -> CostModel:
    return XGBoost(objective=objective)


def of_objective(objective: Objective) -> Contestant:
    return Contestant(objective, partial(Guided, cost_model=partial(_of_objective, objective)))


def _without(part: str) -> SearchStrategy:
    shares = tuple((name, share) for name, share in Guided().shares if name != part)
    total = sum(share for _, share in shares)
    return Guided(shares=tuple((name, share / total) for name, share in shares))


ABLATIONS = (
    Contestant("guided", Guided),
    Contestant("without the cost model", partial(Guided, cost_model=NoModel)),
    Contestant("without local refinement", partial(_without, "local")),
    Contestant("without descending from the best", partial(Guided, patience=1 << 30)),
    Contestant("without looking elsewhere", partial(_without, "elsewhere")),
    Contestant("without points spread at first", partial(Guided, initial=0)),
)
"""The default, and the default without one of its parts."""


def search(space: RecordedSpace, contestant: Contestant, trials: int, seed: int) -> Curve:
    """One search; a configuration that failed costs an evaluation like any other."""
    task = space.task()
    history = contestant.history
    suggestions = [
        ("recorded", row, "transferred")
        for row in (history.fastest(contestant.transferred) if history is not None else [])
    ]
    session = TuningSession(
        space,
        contestant.make(),
        trials,
        target=task.target_key,
        codegen=task.codegen,
        seed=seed,
        suggestions=suggestions,
        prior=None if history is None else history.prior(),
    )
    LocalSearch(task, session, ReplayDevice(space), NoRecorder(), NoProgress(), seed=seed, racing=False).run()
    best, curve = np.inf, Curve()
    for trial in session.history:
        best = min(best, np.inf if trial.outcome.seconds is None else trial.outcome.seconds * 1e3)
        curve.append(float(best) if np.isfinite(best) else None)
    return curve


def looked_up(space: RecordedSpace, history: RecordedSpace, count: int) -> Curve:
    """What another device's fastest configurations, in order, come to on this one."""
    seconds = dict(zip(map(tuple, space.configs.tolist()), space.seconds.tolist(), strict=True))
    times = np.array([seconds.get(row, np.nan) for row in history.fastest(count)]) * 1e3
    best = np.minimum.accumulate(np.where(np.isnan(times), np.inf, times))
    return [float(b) if np.isfinite(b) else None for b in best]


def curves(
    space: RecordedSpace, contestant: Contestant, trials: int, seeds: Sequence[int], processes: int = 1
) -> Curves:
    """The searches of all seeds."""
    one = partial(search, space, contestant, trials)
    if processes < 2:
        return [one(seed) for seed in seeds]
    with Pool(processes) as pool:
        return pool.map(one, seeds)
