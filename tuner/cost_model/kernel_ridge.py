"""A cost model in NumPy, for where XGBoost is not installed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..candidate import Features
from .training import TrainingSet

__all__ = ["KernelRidge"]


class KernelRidge:
    """Ridge regression with a Gaussian kernel on the logarithms of the features, in NumPy."""

    # Relative to the kernel's diagonal of 1: about the noise of one timing.
    RIDGE = 0.03

    # Of more rows than this those with the least weight are left out: solving takes their number cubed.
    ROWS = 1024

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

    def update(self, training: TrainingSet) -> None:
        # A stable sort: of rows of equal weight the later ones stay.
        kept = np.sort(np.argsort(training.weights, kind="stable")[-self.ROWS :])
        scores, row_weights = training.scores[kept], training.weights[kept]
        logs = _log(training.features[kept])
        self._centre = np.asarray(logs.mean(axis=0), dtype=np.float64)
        spread = logs.std(axis=0)
        used = spread > 1e-6
        # Dividing by the root of the number of columns in use keeps squared distances near 2.
        scale = np.where(used, 1 / np.where(used, spread, 1), 0) / np.sqrt(max(1, used.sum()))
        self._scale = np.asarray(scale, dtype=np.float64)
        self._rows = np.asarray((logs - self._centre) * self._scale, dtype=np.float64)
        self._mean = float(scores.mean())
        kernel = _gaussian(self._rows, self._rows)
        # A row of little weight is one with much noise.
        kernel[np.diag_indices_from(kernel)] += self.RIDGE / np.maximum(row_weights, 1e-6)
        weights = np.linalg.solve(kernel, scores.astype(np.float64) - self._mean)
        self._weights = np.asarray(weights, dtype=np.float64)

    def extend(self, training: TrainingSet, new: int) -> None:
        self.update(training)

    def predict(self, features: Features) -> NDArray[np.float32]:
        rows = np.asarray((_log(features) - self._centre) * self._scale, dtype=np.float64)
        return np.asarray(self._mean + _gaussian(rows, self._rows) @ self._weights, dtype=np.float32)

    def predict_each(self, features: Features) -> NDArray[np.float32]:
        return self.predict(features)[None, :]


def _log(features: Features) -> NDArray[np.float64]:
    wide = features.astype(np.float64)
    return np.asarray(np.sign(wide) * np.log1p(np.abs(wide)))


def _gaussian(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    squares = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1)[None, :] - 2 * (a @ b.T)
    return np.asarray(np.exp(-0.5 * np.maximum(squares, 0)))
