"""Cost models: how fast a candidate would be, from its features. Only this module knows xgboost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from .candidate import Features
from .outcome import Trial

__all__ = ["CostModel", "KernelRidge", "Scores", "XGBoost", "available_model", "training_set"]

Scores = NDArray[np.float32]
"""One per row: the best time over this one's, from 0 (failed) to 1 (the best)."""

ROWS = 1024
"""The most trials a model is trained on (the fastest and the newest), so that a long search does not slow."""


class CostModel(Protocol):
    """Learns scores and predicts them."""

    @property
    def name(self) -> str:
        """What to call it before a user, with its version or why it was chosen."""

    def update(self, features: Features, scores: Scores) -> None:
        """Learn anew from these rows alone: a model keeps nothing from one update to the next."""

    def predict(self, features: Features) -> Scores:
        """The scores of the rows; only their order matters."""


def available_model() -> CostModel:
    """XGBoost where it is installed, else a model that needs NumPy alone and says so in its name."""
    if find_spec("xgboost") is None:
        return KernelRidge(reason="xgboost is not installed")
    return XGBoost()


class XGBoost:
    """Gradient-boosted trees, through what is stable API since 1.x: train, DMatrix, inplace_predict."""

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

    def __init__(self) -> None:
        self._booster: Any = None

    @property
    def name(self) -> str:
        return f"xgboost {version('xgboost')}"

    def update(self, features: Features, scores: Scores) -> None:
        # Loading it takes most of a second: not before there is something to learn, when the first candidates
        # are being measured.
        import xgboost

        rows = xgboost.DMatrix(features, label=scores, nthread=1)
        self._booster = xgboost.train(dict(self.PARAMETERS), rows, self.ROUNDS)

    def predict(self, features: Features) -> Scores:
        return np.asarray(self._booster.inplace_predict(features), dtype=np.float32)


class KernelRidge:
    """Ridge regression with a Gaussian kernel on the logarithms of the features, in NumPy."""

    # Relative to the kernel's diagonal of 1: about the noise of one timing.
    RIDGE = 0.03

    def __init__(self, reason: str) -> None:
        self._reason = reason
        self._centre: NDArray[np.float64]
        self._scale: NDArray[np.float64]
        self._rows: NDArray[np.float64]
        self._weights: NDArray[np.float64]
        self._mean = 0.0

    @property
    def name(self) -> str:
        return f"kernel ridge ({self._reason})"

    def update(self, features: Features, scores: Scores) -> None:
        logs = _log(features)
        self._centre = np.asarray(logs.mean(axis=0), dtype=np.float64)
        spread = logs.std(axis=0)
        used = spread > 1e-6
        # Dividing by the root of the number of columns in use keeps squared distances near 2.
        scale = np.where(used, 1 / np.where(used, spread, 1), 0) / np.sqrt(max(1, used.sum()))
        self._scale = np.asarray(scale, dtype=np.float64)
        self._rows = np.asarray((logs - self._centre) * self._scale, dtype=np.float64)
        self._mean = float(scores.mean())
        kernel = _gaussian(self._rows, self._rows)
        kernel[np.diag_indices_from(kernel)] += self.RIDGE
        weights = np.linalg.solve(kernel, scores.astype(np.float64) - self._mean)
        self._weights = np.asarray(weights, dtype=np.float64)

    def predict(self, features: Features) -> Scores:
        rows = np.asarray((_log(features) - self._centre) * self._scale, dtype=np.float64)
        return (self._mean + _gaussian(rows, self._rows) @ self._weights).astype(np.float32)


def training_set(history: Sequence[Trial]) -> tuple[Features, Scores]:
    """Feature rows and scores of the trials of which features are known, in trial order; at most ROWS.

    A score is best / seconds; a censored trial counts at its bound, a failure as 0.
    """
    known = [
        (trial.candidate.features, trial.outcome.seconds)
        for trial in history
        if trial.candidate.features is not None
    ]
    best = min((seconds for _, seconds in known if seconds is not None), default=1.0)
    rows = [(features, 0.0 if seconds is None else best / seconds) for features, seconds in known]
    if len(rows) > ROWS:
        older, newer = rows[: -ROWS // 2], rows[-ROWS // 2 :]
        fastest = sorted(range(len(older)), key=lambda n: -older[n][1])[: ROWS - len(newer)]
        rows = [older[n] for n in sorted(fastest)] + newer
    features = np.stack([features for features, _ in rows]).astype(np.float32)
    return features, np.array([score for _, score in rows], dtype=np.float32)


def _log(features: Features) -> NDArray[np.float64]:
    wide = features.astype(np.float64)
    return np.asarray(np.sign(wide) * np.log1p(np.abs(wide)))


def _gaussian(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    squares = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1)[None, :] - 2 * (a @ b.T)
    return np.asarray(np.exp(-0.5 * np.maximum(squares, 0)))
