"""Whether a cost model can be believed: its predictions beside what was then measured.

A prediction is made before its trial is measured, so every trial with one is held out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby, islice
from typing import Any

import numpy as np

from .cost_model.quality import Floats, Mask, Metrics, NumpyMetrics, pairs, top
from .outcome import Trial

__all__ = ["ModelQuality", "QualityLog", "RoundQuality", "quality_of", "trusted"]

Weighted = tuple[float | None, int]
"""A value, and how many things it is the mean of."""

Ranked = Weighted
"""The rank correlation of a round of n trials, and n - 1."""

WINDOW = 8
"""Rounds that trust looks back on: a model that has learned since is given another chance."""

WORSE = 2.0
"""Standard deviations that a model must rank below chance to be distrusted: by chance alone a useless model
does in one window of 44."""

FASTEST = 4
"""One trial of so many of a round is among those that a model should have found."""

BLAMELESS = ("cancelled", "worker_lost")
"""Failures that say nothing of the candidate."""


@dataclass(frozen=True, slots=True)
class RoundQuality:
    """How the model ranked the trials of one batch that it had predicted.

    rank_correlation: Spearman's, -1 to 1. pairwise_accuracy: of the pairs of different times, the share that
    it put in the right order. top_recall: of the fastest quarter (rounded up), the share that it had in its
    own. Each is None where the trials do not tell. trusted: whether the model is, after this round.
    """

    batch: int
    trials: int
    rank_correlation: float | None
    pairwise_accuracy: float | None
    top_recall: float | None
    trusted: bool

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ModelQuality:
    """The same over all rounds: each trial is compared with those of its own round, which one model has
    predicted. `metrics` names what computed them (empty: nothing was predicted); `trusted` is as of the last
    round."""

    trials: int = 0
    rank_correlation: float | None = None
    pairwise_accuracy: float | None = None
    top_recall: float | None = None
    trusted: bool = True
    distrusted_rounds: int = 0
    metrics: str = ""
    rounds: tuple[RoundQuality, ...] = field(default=(), repr=False)

    def to_json(self) -> dict[str, Any]:
        """Without the rounds, which are events of their own."""
        return {name: value for name, value in asdict(self).items() if name != "rounds"}

    @property
    def warning(self) -> str:
        """What people should know: empty unless the model was distrusted."""
        if not self.distrusted_rounds:
            return ""
        after = "1 round" if self.distrusted_rounds == 1 else f"{self.distrusted_rounds} rounds"
        return (
            f"the cost model ranked held-out trials worse than chance and was not trusted after {after} of "
            f"{len(self.rounds)} (rank correlation {_signed(self.rank_correlation)} over {self.trials} "
            "of them)"
        )


class QualityLog:
    """Is told the trials of one batch after the other, each when all of it is known."""

    def __init__(self, metrics: Metrics | None = None) -> None:
        self._metrics = metrics or NumpyMetrics()
        self._rounds: list[RoundQuality] = []
        self._recent: list[Ranked] = []
        self._ranks: list[Weighted] = []
        self._pairs: list[Weighted] = []
        self._tops: list[Weighted] = []

    def add(self, trials: Sequence[Trial]) -> RoundQuality | None:
        """The quality of a batch; None where fewer than two of its trials were predicted and measured."""
        batch = _batch(trials)
        if batch is None:
            return None
        by, (order, said), (fastest, found) = self._metrics, batch.pairs, batch.fastest
        rank = by.rank_correlation(batch.scores, batch.seconds)
        accuracy, recall = by.share_right(order, said), by.recall(fastest, found)
        self._ranks.append((rank, len(batch) - 1))
        self._pairs.append((accuracy, len(order)))
        self._tops.append((recall, int(fastest.sum())))
        self._recent = [*self._recent, batch.ranked][-WINDOW:]
        quality = RoundQuality(
            batch=trials[0].candidate.batch,
            trials=len(batch),
            rank_correlation=rank,
            pairwise_accuracy=accuracy,
            top_recall=recall,
            trusted=_believed(self._recent),
        )
        self._rounds.append(quality)
        return quality

    @property
    def quality(self) -> ModelQuality:
        """Over all batches so far."""
        rounds = tuple(self._rounds)
        return ModelQuality(
            trials=sum(each.trials for each in rounds),
            rank_correlation=_mean(self._ranks),
            pairwise_accuracy=_mean(self._pairs),
            top_recall=_mean(self._tops),
            trusted=all(each.trusted for each in rounds[-1:]),
            distrusted_rounds=sum(not each.trusted for each in rounds),
            metrics=self._metrics.name if rounds else "",
            rounds=rounds,
        )


def quality_of(history: Sequence[Trial], metrics: Metrics | None = None) -> ModelQuality:
    """The quality of the predictions of these trials, of which nothing else is looked at."""
    log = QualityLog(metrics)
    for _, trials in groupby(history, lambda trial: trial.candidate.batch):
        log.add(list(trials))
    return log.quality


def trusted(history: Sequence[Trial]) -> bool:
    """Whether a model with these predictions may choose what to measure.

    It looks at the last rounds alone, and never at a library, so that a search repeats wherever it goes on.
    """
    batches = (list(trials) for _, trials in groupby(reversed(history), lambda trial: trial.candidate.batch))
    known = (batch.ranked for batch in map(_batch, batches) if batch is not None)
    return _believed(list(islice(known, WINDOW)))


def _believed(rounds: Sequence[Ranked]) -> bool:
    """Whether rank correlations are compatible with chance, or better.

    Without a relation the rank correlation of n trials has the mean 0 and the variance 1 / (n - 1) (Kendall
    and Gibbons, Rank Correlation Methods, 1990), so the mean weighted by n - 1 has 1 / sum(n - 1).
    """
    known = [(rank, weight) for rank, weight in rounds if rank is not None]
    weight = sum(weight for _, weight in known)
    return not weight or sum(rank * each for rank, each in known) / math.sqrt(weight) > -WORSE


@dataclass(frozen=True, slots=True, eq=False)
class _Batch:
    """What was predicted of one round, and what came of it."""

    scores: Floats
    seconds: Floats
    censored: Mask

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def ranked(self) -> Ranked:
        return NumpyMetrics().rank_correlation(self.scores, self.seconds), len(self) - 1

    @property
    def pairs(self) -> tuple[Mask, Mask]:
        return pairs(self.scores, self.seconds, self.censored)

    @property
    def fastest(self) -> tuple[Mask, Mask]:
        """Which trials were the fastest, and which the model had said."""
        k = math.ceil(len(self) / FASTEST)
        return top(np.where(self.censored, np.inf, self.seconds), k), top(-self.scores, k)


def _batch(trials: Sequence[Trial]) -> _Batch | None:
    rows = [
        (
            trial.candidate.predicted,
            math.inf if trial.outcome.seconds is None else trial.outcome.seconds,
            trial.outcome.censored,
        )
        for trial in trials
        if trial.candidate.predicted is not None
        and math.isfinite(trial.candidate.predicted)
        and trial.outcome.failure not in BLAMELESS
    ]
    if len(rows) < 2:
        return None
    scores, seconds, censored = zip(*rows, strict=True)
    return _Batch(np.array(scores, dtype=np.float64), np.array(seconds), np.array(censored, dtype=np.bool_))


def _mean(weighted: Sequence[Weighted]) -> float | None:
    known = [(value, weight) for value, weight in weighted if value is not None]
    total = sum(weight for _, weight in known)
    return sum(value * weight for value, weight in known) / total if total else None


def _signed(value: float | None) -> str:
    return "unknown" if value is None else f"{value:+.2f}"
