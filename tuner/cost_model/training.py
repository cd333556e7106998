"""What a cost model is taught."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..candidate import Features
from ..errors import SchemaMismatch
from ..estimate import Estimate
from ..outcome import Trial
from ..prior import Prior

__all__ = ["ROWS", "SchemaMismatch", "TrainingSet", "learnable", "training_set"]

ROWS = 1024
"""The most trials a model is trained on (the fastest and the newest), so that a long search does not slow."""

PRIOR_ROWS = 2048
"""The most rows of other searches: of more, a part that is spread evenly over them."""

PRIOR_TRIALS = 16.0
"""All rows of other searches together weigh as much as so many trials of this one, less as its own come in:
the weight halves with every HALVED of them."""

HALVED = 24


@dataclass(frozen=True, slots=True, eq=False)
class TrainingSet:
    """features: float32, shape (n, columns). scores: float32, shape (n,), 0 to 1. weights: float32, shape
    (n,), 1 for a trial of this search. groups: int64, shape (n,), ascending: only rows of one group were
    measured under the same conditions. failed: bool, shape (n,): its score of 0 is no time. foretold:
    float32, shape (n,), the scores by rules, all 0 where there are none."""

    features: Features
    scores: NDArray[np.float32]
    weights: NDArray[np.float32]
    groups: NDArray[np.int64]
    failed: NDArray[np.bool_]
    foretold: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.scores)

    @classmethod
    def plain(cls, features: Features, scores: NDArray[np.float32]) -> TrainingSet:
        """Rows of one group, all of the same weight."""
        count = len(scores)
        ones, zeros = np.ones(count, dtype=np.float32), np.zeros(count, dtype=np.int64)
        return cls(features, scores, ones, zeros, scores <= 0, np.zeros(count, dtype=np.float32))


def learnable(history: Sequence[Trial]) -> list[Trial]:
    """The trials that teach something: their features are known, and what failed was the candidate's own
    fault."""
    return [
        trial
        for trial in history
        if trial.candidate.features is not None and trial.outcome.failure not in ("cancelled", "worker_lost")
    ]


def training_set(
    history: Sequence[Trial], prior: Prior | None = None, estimate: Estimate | None = None
) -> TrainingSet:
    """The rows of `prior`, then the trials of which features are known, in trial order, at most ROWS.

    A score is best / seconds; a censored trial counts at its bound. A failure has the score 0 and says so.
    Raises SchemaMismatch where the prior's columns are not those of the trials.
    """
    trials = _cut(learnable(history))
    best = min((t.outcome.seconds for t in trials if t.outcome.seconds is not None), default=1.0)
    seconds = [trial.outcome.seconds for trial in trials]
    scores = np.array([0.0 if s is None else best / s for s in seconds], dtype=np.float32)
    failed = np.array([s is None for s in seconds], dtype=bool)
    rows = [t.candidate.features for t in trials if t.candidate.features is not None]
    features = np.stack(rows).astype(np.float32) if rows else np.empty((0, 0), dtype=np.float32)
    ones, zeros = np.ones(len(rows), np.float32), np.zeros(len(rows), np.int64)
    foretold = estimate.scores(features) if estimate and rows else np.zeros(len(rows), np.float32)
    own = TrainingSet(features, scores, ones, zeros, failed, foretold)
    return own if prior is None or not len(prior) else _joined(prior, own, estimate)


def _joined(prior: Prior, own: TrainingSet, estimate: Estimate | None) -> TrainingSet:
    columns = prior.features.shape[1]
    if len(own) and columns != own.features.shape[1]:
        says = prior.says or "what other searches measured"
        schema = "of an unknown schema" if prior.schema is None else f"of schema {prior.schema}"
        raise SchemaMismatch(says, f"{schema}, {columns} columns", f"{own.features.shape[1]} columns")
    chosen = np.unique(np.linspace(0, len(prior) - 1, min(len(prior), PRIOR_ROWS)).astype(np.int64))
    chosen = chosen[np.argsort(prior.groups[chosen], kind="stable")]
    weight = PRIOR_TRIALS * 0.5 ** (len(own) / HALVED) / len(chosen)
    _, groups = np.unique(prior.groups[chosen], return_inverse=True)
    foretold = np.zeros(len(chosen), np.float32)
    if estimate is not None:
        foretold = estimate.scores_within(prior.features[chosen], groups)
    return TrainingSet(
        np.concatenate([prior.features[chosen], own.features.reshape(-1, columns)]),
        np.concatenate([prior.scores[chosen], own.scores]),
        np.concatenate([np.full(len(chosen), max(weight, 1e-4), np.float32), own.weights]),
        np.concatenate([groups, own.groups + groups.max() + 1]).astype(np.int64),
        np.concatenate([prior.scores[chosen] <= 0, own.failed]),
        np.concatenate([foretold, own.foretold]),
    )


def _cut(trials: list[Trial]) -> list[Trial]:
    """At most ROWS: the newest half of that many, and the fastest of the others."""
    if len(trials) <= ROWS:
        return trials
    older, newer = trials[: -ROWS // 2], trials[-ROWS // 2 :]
    slow = [float("inf") if t.outcome.seconds is None else t.outcome.seconds for t in older]
    fastest = sorted(range(len(older)), key=lambda n: slow[n])[: ROWS - len(newer)]
    return [older[n] for n in sorted(fastest)] + newer
