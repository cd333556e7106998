"""A Gaussian process: what is expected of a point, and how little is known of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["GaussianProcess", "Posterior"]

Floats = NDArray[np.float64]

ITERATIONS = 12
"""Of L-BFGS over the length scales; three times as many find no better points."""

NOISE = 1e-3
"""The variance of the noise that is most likely beforehand, as a part of the values' variance."""

LEAST_VARIANCE = 1e-18
"""Of a point: what is known better is known exactly."""

SPREADS = (1.0, 1.5)
"""How many e-folds a scale and the noise may well be away from what is likely beforehand (one standard
deviation)."""


@dataclass(frozen=True, slots=True, eq=False)
class GaussianProcess:
    """Values at points, with the Matérn kernel of smoothness 5/2, a length scale for each coordinate, and
    noise (Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, 2.2, 4.2 and 5.4.1).

    points: shape (n, d), each coordinate from 0 to 1. values: standardised, shape (n,). scales: one over the
    squared length scales, shape (d,). noise and variance: of the values, noise as a part of variance.
    """

    points: Floats
    values: Floats
    mean: float
    deviation: float
    scales: Floats
    noise: float

    @classmethod
    def fitted(cls, points: Floats, values: Floats) -> GaussianProcess:
        """With the most likely scales and noise after the values are known (log-normal beforehand; the
        variance is the one that fits best). Needs SciPy."""
        from scipy.optimize import minimize

        mean, deviation = float(values.mean()), float(values.std()) or 1.0
        standard = (values - mean) / deviation
        squares = (points.T[:, :, None] - points.T[:, None, :]) ** 2
        first = np.append(np.zeros(points.shape[1]), math.log(NOISE))
        spreads = np.append(np.full(points.shape[1], SPREADS[0]), SPREADS[1])

        def loss(logs: Floats) -> tuple[float, Floats]:
            away = (logs - first) / spreads
            value, slope = _unlikely(squares, standard, np.exp(logs[:-1]), math.exp(logs[-1]))
            return value + 0.5 * float(away @ away), slope + away / spreads

        bounds = [(start - 6.0, start + 6.0) for start in first]
        found = minimize(
            loss, first, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": ITERATIONS}
        )
        return cls(points, standard, mean, deviation, np.exp(found.x[:-1]), math.exp(found.x[-1]))

    def covariance(self, a: Floats, b: Floats) -> Floats:
        """Of values without noise, as parts of their variance: shape (len(a), len(b))."""
        root = np.sqrt(self.scales)
        a, b = a * root, b * root
        return _matern((a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1)[None, :] - 2 * (a @ b.T))[0]


class Posterior:
    """What a process says of some points, shape (m, d): their `mean` and `variance`, which shrinks as more of
    them are counted as measured."""

    def __init__(self, process: GaussianProcess, points: Floats) -> None:
        from scipy.linalg import solve_triangular

        self._process = process
        self._points = points
        known = process.covariance(process.points, process.points)
        known[np.diag_indices_from(known)] += process.noise
        lower = np.linalg.cholesky(known)
        self._halves = solve_triangular(lower, process.covariance(process.points, points), lower=True)
        self._more: list[Floats] = []
        weights = solve_triangular(lower, process.values, lower=True)
        self._variance = float(weights @ weights) / len(weights)
        self._share = 1.0 - (self._halves**2).sum(axis=0)
        self.mean = np.asarray(process.mean + process.deviation * (weights @ self._halves), dtype=np.float64)

    @property
    def variance(self) -> Floats:
        scale = self._variance * self._process.deviation**2
        return np.asarray(np.maximum(self._share, 1e-10) * scale, dtype=np.float64)

    def measuring(self, number: int) -> None:
        """Count that point as measured, with the value that is expected of it: what is near is known better
        from now on (the kriging believer of Ginsbourger, Le Riche and Carraro, Computational Intelligence in
        Expensive Optimization Problems, 2010)."""
        near = self._process.covariance(self._points[number : number + 1], self._points)[0]
        near -= self._halves[:, number] @ self._halves
        for row in self._more:
            near -= row[number] * row
        row = near / math.sqrt(max(float(self._share[number]), 0.0) + self._process.noise)
        self._more.append(row)
        self._share -= row**2

    def improvement(self, best: float) -> Floats:
        """By how much a value below `best` is expected to be, counting others as 0 (Jones, Schonlau and
        Welch, Journal of Global Optimization 13, 1998)."""
        from scipy.special import ndtr

        # Where nothing varies (all times equal) nothing is uncertain, and no quotient means anything.
        deviation = np.sqrt(np.maximum(self.variance, LEAST_VARIANCE))
        steps = (best - self.mean) / deviation
        density = np.exp(-0.5 * steps**2) / math.sqrt(2 * math.pi)
        return np.asarray(deviation * (steps * ndtr(steps) + density), dtype=np.float64)


def _matern(squares: Floats) -> tuple[Floats, Floats]:
    """The kernel at squared distances, and its derivative by them."""
    far = np.sqrt(5.0 * np.maximum(squares, 0.0))
    falling = np.exp(-far)
    return (1 + far + far**2 / 3) * falling, -(5 / 6) * (1 + far) * falling


def _unlikely(squares: Floats, values: Floats, scales: Floats, noise: float) -> tuple[float, Floats]:
    """Minus the logarithm of the likelihood, up to a constant, at the variance that fits best, and its
    derivatives by the logarithms of the scales and of the noise."""
    from scipy.linalg import cho_factor, cho_solve

    count = len(values)
    kernel, slope = _matern(np.tensordot(scales, squares, 1))
    kernel[np.diag_indices(count)] += noise
    factor = cho_factor(kernel, lower=True, check_finite=False)
    weights = cho_solve(factor, values, check_finite=False)
    variance = max(float(values @ weights) / count, 1e-12)
    inverse = cho_solve(factor, np.eye(count), check_finite=False)
    value = 0.5 * count * math.log(variance) + float(np.log(np.diag(factor[0])).sum())
    rest = inverse - np.outer(weights, weights) / variance
    by_scale = 0.5 * np.tensordot(squares, rest * slope, 2) * scales
    return value, np.append(by_scale, 0.5 * float(np.trace(rest)) * noise)
