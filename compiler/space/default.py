"""The schedule that needs no search: the config with the lowest estimated cycles, by rules over the target's
description alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..ir import PrimFunc
from ..schedule import Schedule, ScheduleError
from ..target import Target
from .compile import ColumnCompiler
from .contraction import MIN_ACCUMULATORS
from .features import FEATURE_NAMES, LEVELS, feature_columns
from .population import Population
from .sketch import SearchSpace, Sketch
from .space import space_of

_COLUMN = {name: n for n, name in enumerate(FEATURE_NAMES)}
#: Configs looked at in each sketch; drawn from one fixed stream, so that the choice is the same everywhere.
SAMPLES = 768
#: Bytes a cycle into the first level from the second, from the third, and from memory: typical of the server
#: cores of 2020-2025.
L2_BYTES, L3_BYTES, MEMORY_BYTES = 48.0, 16.0, 5.0
#: Share of a cache that one loop nest can count on.
USABLE = 0.6


def default_schedule(func: PrimFunc, target: Target) -> Schedule:
    """A schedule of `func` for `target`; the same for the same arguments on every machine."""
    space = space_of(func, target)
    candidates = [c for s in space.sketches for c in _best_of(s, target)]
    for _, sketch, row in sorted(candidates, key=lambda c: c[0]):
        try:
            return sketch.resolve(row).apply(func)
        except ScheduleError:
            continue
    return Schedule(func)


def default_configs(space: SearchSpace, target: Target) -> list[tuple[Sketch, Population]]:
    """For each sketch, its config with the lowest estimate (shape (1, knobs)); the best sketch first."""
    found = [c for s in space.sketches for c in _best_of(s, target)]
    return [(s, row[None, :]) for _, s, row in sorted(found, key=lambda c: c[0])]


def _best_of(sketch: Sketch, target: Target) -> list[tuple[float, Sketch, NDArray[np.int64]]]:
    population = sketch.columns.random(SAMPLES, np.random.default_rng(0))
    if not len(population):
        return []
    cycles = estimate(sketch, population, target)
    best = int(np.argmin(cycles))
    return [(float(cycles[best]), sketch, population[best])]


def estimate(sketch: Sketch, population: Population, target: Target) -> NDArray[np.float64]:
    """Estimated cycles of one call, shape (n,): multiply-adds and loads of every tiled block, traffic between
    caches, copies.

    Two multiply-adds and two loads a cycle, four cycles of latency. An estimate to rank configs by, not a
    prediction.
    """
    total = np.zeros(len(population))
    for main in sketch.mains:
        total += _block_cycles(_features_of(sketch, main, population), target)
    return total


def _features_of(sketch: Sketch, main: str, population: Population) -> NDArray[np.float64]:
    if main == sketch.main:
        return sketch.columns.features(population).astype(np.float64)
    c = ColumnCompiler(sketch.knobs)
    evaluate = c.compile(feature_columns(sketch.func, main, sketch.index, c))
    out = np.empty((len(FEATURE_NAMES), len(population)), np.float32)
    return evaluate(population.T.astype(np.float32), out).T.astype(np.float64)


def _block_cycles(f: NDArray[np.float64], target: Target) -> NDArray[np.float64]:
    def col(name: str) -> NDArray[np.float64]:
        return f[:, _COLUMN[name]]

    vectors = col("trips") / col("lanes")
    loads = col("inner loads") / np.maximum(col("unrolled"), 1)
    latency = MIN_ACCUMULATORS / np.maximum(col("accumulators"), 1)
    # A loop around a short body costs about two cycles a turn.
    turn = 2.0 / np.maximum(col("unrolled"), 1)
    compute = vectors * (0.5 * np.maximum(np.maximum(1.0, loads), latency) + turn)
    traffic = (
        _traffic(f, target.l1d) / L2_BYTES
        + _traffic(f, target.l2) / L3_BYTES
        + _traffic(f, target.l3) / MEMORY_BYTES
    )
    copies = sum(col(f"copy work.{n}") * (0.15 + 2.0 * col(f"copy strided.{n}")) for n in range(2))
    return compute + traffic + copies


def _traffic(f: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Bytes that come into a cache of `size` bytes: what the largest nest that fits touches, times how often
    it runs."""
    out = np.full(len(f), np.inf)
    trips = f[:, _COLUMN["trips"]]
    done = np.zeros(len(f), bool)
    for level in range(LEVELS):
        fits = (f[:, _COLUMN[f"bytes.{level}"]] <= USABLE * (size or 1 << 15)) & ~done
        out = np.where(fits, trips / np.maximum(f[:, _COLUMN[f"intensity.{level}"]], 1e-9), out)
        done |= ~fits
    return np.where(np.isinf(out), trips * 8, out)
