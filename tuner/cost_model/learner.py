"""Teaching a model as a search goes on, in time proportional to what is new."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ..estimate import Estimate
from ..outcome import Trial
from ..prior import Prior
from ..time_split import Stopwatch
from .base import CostModel
from .corrected import Corrected
from .gradient_boosting import XGBoost
from .training import learnable, training_set

__all__ = ["Learner"]

FIRST = 192
"""Up to so many trials a model is taught anew each time: it takes 20 ms, and is best."""

GROWTH = 1.25
"""From there on, one taught anew serves until there are so many times the trials, and learns the new ones on
top."""

Told = tuple[tuple[str, float | None], ...]


@dataclass(eq=False)
class Learner:
    """Models by what they were taught.

    What `taught` answers is a function of its arguments alone. The model of the last turning point is kept,
    so that it need not be taught again; a search that is resumed makes it anew. `make` makes a model of
    scores; with an estimate it learns where that is wrong.
    """

    make: Callable[[], CostModel]
    _kept: dict[tuple[Told, int], CostModel] = field(default_factory=dict, repr=False)

    def taught(
        self,
        history: Sequence[Trial],
        prior: Prior | None = None,
        watch: Stopwatch | None = None,
        estimate: Estimate | None = None,
    ) -> CostModel | None:
        """The model for this history; None while it has nothing to learn from (no trial with a time, of known
        features, and no prior). `watch` counts the parts `load` and `train`."""
        trials = learnable(history)
        timed = any(trial.outcome.seconds is not None for trial in trials)
        if not timed and (prior is None or not len(prior)):
            return None
        watch = watch or Stopwatch()
        if isinstance(self.make(), XGBoost):
            # Most of a second, and so not before there is something to learn: by then, where there is a
            # processor to spare, candidates are being measured meanwhile.
            with watch.part("load"):
                XGBoost.load()
        with watch.part("train"):
            return self._taught(trials, prior, estimate)

    def _taught(self, trials: Sequence[Trial], prior: Prior | None, estimate: Estimate | None) -> CostModel:
        since = turning_point(len(trials))
        if len(trials) < FIRST:
            return self._anew(trials, prior, estimate)
        model = copy.copy(self._base(trials[:since], prior, estimate))
        if since < len(trials):
            model.extend(training_set(trials, prior, estimate), len(trials) - since)
        return model

    def _base(self, trials: Sequence[Trial], prior: Prior | None, estimate: Estimate | None) -> CostModel:
        told = tuple((trial.candidate.key, trial.outcome.seconds) for trial in trials)
        key = (told, id(prior))
        if key not in self._kept:
            self._kept.clear()
            self._kept[key] = self._anew(trials, prior, estimate)
        return self._kept[key]

    def _anew(self, trials: Sequence[Trial], prior: Prior | None, estimate: Estimate | None) -> CostModel:
        model = self.make() if estimate is None else Corrected(self.make(), estimate)
        model.update(training_set(trials, prior, estimate))
        return model


def turning_point(trials: int) -> int:
    """The number of trials, at most `trials`, at which the model was last taught anew."""
    if trials <= FIRST:
        return trials
    point = FIRST
    while int(point * GROWTH) <= trials:
        point = int(point * GROWTH)
    return point
