"""XGBoost as a cost model."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ..candidate import Features
from .training import TrainingSet

__all__ = ["OBJECTIVES", "Objective", "XGBoost"]

Objective = Literal["throughput", "log time", "rank"]

OBJECTIVES: tuple[Objective, ...] = ("throughput", "log time", "rank")
"""What is learned: best time over time, the logarithm of time (failures: as slow as the slowest), or only the
order within each group (pairs of trials, a failure last)."""


class XGBoost:
    """Gradient-boosted trees, through what is stable API since 1.x: train, DMatrix, inplace_predict.

    `members` models are trained on the same rows with other weights, drawn from the exponential distribution:
    the Bayesian bootstrap (Rubin, The Annals of Statistics 9, 1981). The first has the weights as they are.
    """

    # Shallow trees, for tens of rows. On recorded spaces, depths 3 to 6, 40 to 100 rounds and less
    # regularisation differed by no more than the seeds do. 64 to 512 rows of 140 features take 15 to 40 ms.
    ROUNDS = 50
    PARAMETERS: ClassVar[Mapping[str, object]] = {
        "tree_method": "hist",
        "max_depth": 4,
        "eta": 0.2,
        # Several threads would add in an order of their own: results would no longer repeat.
        "nthread": 1,
        "seed": 0,
        "verbosity": 0,
    }

    def __init__(self, objective: Objective = "throughput", members: int = 1) -> None:
        self._objective = objective
        self._members = members
        self._boosters: list[Any] = []

    @staticmethod
    def load() -> Any:
        """The library, which takes most of a second to load the first time, and a tenth more where the
        collector looks through thousands of new modules again and again."""
        collects = gc.isenabled()
        gc.disable()
        try:
            import xgboost
        finally:
            if collects:
                gc.enable()
        return xgboost

    @property
    def name(self) -> str:
        return f"xgboost {version('xgboost')}"

    def update(self, training: TrainingSet) -> None:
        self._boosters = []
        self._boost(training, self.ROUNDS)

    def extend(self, training: TrainingSet, new: int) -> None:
        self._boost(training, max(1, round(self.ROUNDS * new / max(1, len(training)))))

    def predict(self, features: Features) -> NDArray[np.float32]:
        return np.asarray(self.predict_each(features).mean(axis=0), dtype=np.float32)

    def predict_each(self, features: Features) -> NDArray[np.float32]:
        rows = np.ascontiguousarray(features, dtype=np.float32)
        return np.stack([np.asarray(b.inplace_predict(rows), dtype=np.float32) for b in self._boosters])

    def _boost(self, training: TrainingSet, rounds: int) -> None:
        xgboost = self.load()
        parameters = dict(self.PARAMETERS)
        if self._objective == "rank":
            parameters |= {"objective": "rank:pairwise"}
        before = self._boosters or [None] * self._members
        rng = np.random.default_rng(len(training))
        self._boosters = []
        for member, booster in enumerate(before):
            weights = training.weights * (rng.exponential(1.0, len(training)) if member else 1.0)
            rows = self._matrix(xgboost, training, weights.astype(np.float32))
            self._boosters.append(xgboost.train(parameters, rows, rounds, xgb_model=booster))

    def _matrix(self, xgboost: Any, training: TrainingSet, weights: NDArray[np.float32]) -> Any:
        if self._objective != "rank":
            return xgboost.DMatrix(training.features, label=self._labels(training), weight=weights, nthread=1)
        rows = xgboost.DMatrix(training.features, label=_grades(training), nthread=1)
        # Ranking weighs whole groups.
        sizes = np.unique(training.groups, return_counts=True)[1]
        rows.set_group(sizes)
        ends = np.cumsum(sizes)
        rows.set_weight(
            [float(weights[end - size : end].mean()) for size, end in zip(sizes, ends, strict=True)]
        )
        return rows

    def _labels(self, training: TrainingSet) -> NDArray[np.float32]:
        if self._objective == "throughput":
            return training.scores
        slowest = training.scores[~training.failed].min() if not training.failed.all() else 1.0
        return np.asarray(np.log(np.maximum(training.scores, slowest)), dtype=np.float32)


def _grades(training: TrainingSet) -> NDArray[np.float32]:
    """Grades of relevance, 0 for a failure to 31 for the best of all: rank:pairwise compares them only."""
    return np.asarray(np.round(31 * training.scores), dtype=np.float32)
