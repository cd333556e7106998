"""How well scores rank what was measured: the metrics of one round.

With scikit-learn its metrics are used (and SciPy's, which comes with it), else the same by NumPy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Metrics", "NumpyMetrics", "ScikitLearnMetrics", "available_metrics", "pairs", "top"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Metrics(Protocol):
    """`scores` are higher, `seconds` lower for what is faster; a failure took infinitely long."""

    @property
    def name(self) -> str:
        """What computes them, with its version."""

    def rank_correlation(self, scores: Floats, seconds: Floats) -> float | None:
        """Spearman's, from -1 to 1, equal values sharing their mean rank; None where all are equal."""

    def share_right(self, truth: Mask, said: Mask) -> float | None:
        """How many of `said` are as in `truth`, from 0 to 1; None of nothing."""

    def recall(self, truth: Mask, said: Mask) -> float | None:
        """How many of those in `truth` are in `said`, from 0 to 1; None where none is in `truth`."""


def available_metrics() -> Metrics:
    """scikit-learn's where it is installed, else NumPy's, which says why in its name."""
    if find_spec("sklearn") is None:
        return NumpyMetrics()
    return ScikitLearnMetrics()


@dataclass(frozen=True, slots=True)
class ScikitLearnMetrics:
    """By the library. Loading it takes half a second, unless XGBoost has done so."""

    @property
    def name(self) -> str:
        return f"scikit-learn {version('scikit-learn')}"

    def rank_correlation(self, scores: Floats, seconds: Floats) -> float | None:
        from scipy.stats import spearmanr

        if _constant(scores) or _constant(seconds):
            return None
        return float(spearmanr(scores, -seconds).statistic)

    def share_right(self, truth: Mask, said: Mask) -> float | None:
        from sklearn.metrics import accuracy_score

        return float(accuracy_score(truth, said)) if len(truth) else None

    def recall(self, truth: Mask, said: Mask) -> float | None:
        from sklearn.metrics import recall_score

        return float(recall_score(truth, said)) if truth.any() else None


@dataclass(frozen=True, slots=True)
class NumpyMetrics:
    """The same without a library."""

    name: str = "NumPy (scikit-learn is not installed)"

    def rank_correlation(self, scores: Floats, seconds: Floats) -> float | None:
        if _constant(scores) or _constant(seconds):
            return None
        a, b = _ranks(scores), _ranks(-seconds)
        a, b = a - a.mean(), b - b.mean()
        return float((a @ b) / math.sqrt((a @ a) * (b @ b)))

    def share_right(self, truth: Mask, said: Mask) -> float | None:
        return float(np.mean(truth == said)) if len(truth) else None

    def recall(self, truth: Mask, said: Mask) -> float | None:
        return float(np.mean(said[truth])) if truth.any() else None


def pairs(scores: Floats, seconds: Floats, censored: Mask) -> tuple[Mask, Mask]:
    """For each ordered pair that can be compared, whether its first one is faster, and whether the scores say
    so. A pair of equal scores is thus right in one of its two orders: half right.

    Equal times cannot be compared, nor can a bound (`censored`) with what took longer than it.
    """
    first, second = np.nonzero(~np.eye(len(scores), dtype=bool))
    faster, slower = seconds[first] < seconds[second], seconds[first] > seconds[second]
    known = (faster & ~censored[first]) | (slower & ~censored[second])
    return faster[known], (scores[first] > scores[second])[known]


def top(values: Floats, k: int) -> Mask:
    """Which k values are the least; the earliest of equals. An infinite one never is."""
    chosen = np.zeros(len(values), dtype=bool)
    chosen[np.argsort(values, kind="stable")[:k]] = True
    return chosen & np.isfinite(values)


def _constant(values: Floats) -> bool:
    return len(values) < 2 or bool((values == values[0]).all())


def _ranks(values: Floats) -> Floats:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    means = np.cumsum(counts) - (counts - 1) / 2
    return np.asarray(means[inverse], dtype=np.float64)
