"""The schedule that needs no search: the config with the lowest estimated cycles, by rules over the target's
description alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ..ir import PrimFunc
from ..schedule import Schedule, ScheduleError
from ..target import Target
from .accesses import LINE
from .compile import ColumnCompiler
from .feature_names import FEATURE_NAMES, LEVELS, SLOTS
from .features import feature_columns
from .population import Population
from .sketch import SearchSpace, Sketch
from .space import space_of
from .symbolic import symbolic_schedule

#: The features that the estimate reads, as their numbers among all.
_NOT_READ = ("extent.", "elements.", "lines.", "reuse distance.")
_CHOSEN = tuple(n for n, name in enumerate(FEATURE_NAMES) if not name.startswith(_NOT_READ))
_COLUMN = {FEATURE_NAMES[n]: at for at, n in enumerate(_CHOSEN)}
#: Configs looked at in each sketch; drawn from one fixed stream, so that the choice is the same everywhere.
SAMPLES = 768
#: Cycles of each thing that a block does; fitted by benchmarks/fit_default.py to the times of about 6,800
#: kernels of 100 workloads, on one AVX-512 core of 2025, on arrays 16 bytes past a cache line. Lines that are
#: crowded out are not among these: 16 rows by a matrix with rows 4096 bytes apart lose 2.3 cycles for each.
CYCLES: dict[str, float] = {
    "vector operation": 0.16,
    "load beyond one for each operation": 0.7,
    "vector loaded across lines": 0.2,
    "operation that waits for an accumulator": 0.049,
    "load that is guarded": 0.21,
    "turn of an inner loop": 0.33,
    "register tile": 1.6,
    "line from the second-level cache": 0.043,
    "line from the third-level cache": 0.04,
    "line from memory": 0.15,
    "line crowded out of the second-level cache": 2.0,
    "page translated": 0.64,
    "element copied by vectors": 0.25,
    "element copied one by one": 0.98,
    "vector of results stored": 3.1,
    "element scattered": 0.078,
    "element gathered": 0.34,
}
#: Accumulators below which multiply-adds are seen to wait: more than latency times throughput (8), since
#: loads come between.
BUSY_ACCUMULATORS = 12
#: Entries of the first-level translation buffer that data pages can count on.
TLB_PAGES = 64
#: Bytes of a cache that the target does not describe.
DEFAULT_CACHE = 1 << 15
#: Share of a cache that one loop nest can count on.
USABLE = 0.6


def default_schedule(func: PrimFunc, target: Target) -> Schedule:
    """A schedule of `func` for `target`; the same for the same arguments on every machine."""
    return next(default_schedules(func, target))


def default_schedules(func: PrimFunc, target: Target) -> Iterator[Schedule]:
    """The default schedule, then what to take where it has no code: an estimate does not know how many
    instructions an operation becomes. The last is the program as it stands."""
    if func.sizes:
        yield symbolic_schedule(func, target)
    else:
        space = space_of(func, target)
        candidates = [c for s in space.sketches for c in _best_of(s, target)]
        for _, sketch, row in sorted(candidates, key=lambda c: c[0]):
            try:
                schedule = sketch.resolve(row).apply(func)
            except ScheduleError:
                continue
            yield schedule
    yield Schedule(func)


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
    """Estimated cycles of one call, shape (n,). An estimate to rank configs by, not a prediction."""
    cycles: NDArray[np.float64] = terms_of(sketch, population, target) @ np.array(list(CYCLES.values()))
    return cycles


def estimated_cycles(features: NDArray[np.float32], target: Target) -> NDArray[np.float64]:
    """The same of rows of features, shape (n, len(FEATURE_NAMES)), as far as they tell: of what runs beside a
    program's main block, such as packing, they do not. At least 1 each."""
    cycles = terms(features[:, _CHOSEN].astype(np.float64), target) @ np.array(list(CYCLES.values()))
    return np.asarray(np.maximum(cycles, 1.0), dtype=np.float64)


def terms_of(sketch: Sketch, population: Population, target: Target) -> NDArray[np.float64]:
    """How often each thing of CYCLES happens in one call, shape (n, len(CYCLES))."""
    total = np.zeros((len(population), len(CYCLES)))
    for main in sketch.mains:
        total += terms(_features_of(sketch, main, population), target)
    return total


def _features_of(sketch: Sketch, main: str, population: Population) -> NDArray[np.float64]:
    """The features of _CHOSEN, shape (n, len(_CHOSEN))."""
    if main == sketch.main:
        return sketch.columns.features(population, _CHOSEN).astype(np.float64)
    c = ColumnCompiler(sketch.knobs)
    evaluate = c.compile(feature_columns(sketch.func, main, sketch.index, c))
    out = np.empty((len(_CHOSEN), len(population)), np.float32)
    return evaluate(population.T.astype(np.float32), out, _CHOSEN).T.astype(np.float64)


def terms(f: NDArray[np.float64], target: Target) -> NDArray[np.float64]:
    """How often each thing of CYCLES happens in one call of a block, shape (n, len(CYCLES)), from feature
    rows."""

    def col(name: str) -> NDArray[np.float64]:
        return f[:, _COLUMN[name]]

    vectors = col("executed") / col("lanes")
    loads = col("inner loads") / np.maximum(col("unrolled"), 1)
    latency = BUSY_ACCUMULATORS / np.maximum(col("accumulators"), 1)
    outputs = col("padded.0") * col("padded.1") * col("padded.2")
    gathers = sum((col(f"lane stride.{s}") == 2).astype(np.float64) for s in range(1, SLOTS))
    # A multiply-add is one instruction, and so is what fetches its operand.
    work = np.maximum(col("operations") / 2, 1)
    room = USABLE * (target.l2 or DEFAULT_CACHE)
    runs = _runs(f)
    third = _streamed(f, runs, "bytes", room, "bytes") / LINE
    # Rows that share sets of the first-level cache share those of the second one, in the same proportion.
    crowded = _streamed(f, runs, "conflicting bytes", room, "bytes") / LINE
    found = {
        "vector operation": vectors * work,
        "load beyond one for each operation": vectors * np.maximum(loads - 1, 0),
        "vector loaded across lines": vectors * col("loads across lines") / np.maximum(col("unrolled"), 1),
        "operation that waits for an accumulator": vectors * np.maximum(latency - 1, 0),
        "load that is guarded": vectors * loads * col("guarded"),
        "turn of an inner loop": vectors / np.maximum(col("unrolled"), 1),
        "register tile": outputs / (np.maximum(col("accumulators"), 1) * col("lanes")),
        "line from the second-level cache": _streamed(
            f, runs, "conflicting bytes", USABLE * (target.l1d or DEFAULT_CACHE), "bytes"
        )
        / LINE,
        "line from the third-level cache": third,
        "line from memory": _streamed(f, runs, "bytes", USABLE * (target.l3 or DEFAULT_CACHE), "bytes")
        / LINE,
        "line crowded out of the second-level cache": np.maximum(crowded - third, 0),
        "page translated": _streamed(f, runs, "pages", TLB_PAGES, "pages"),
        "element copied by vectors": sum(
            col(f"copy work.{n}") * (1 - col(f"copy strided.{n}")) for n in range(2)
        ),
        "element copied one by one": sum(col(f"copy work.{n}") * col(f"copy strided.{n}") for n in range(2)),
        "vector of results stored": outputs / np.maximum(col("stored lanes"), 1),
        "element scattered": outputs * (col("lane stride.0") == 2),
        "element gathered": vectors * col("lanes") * gathers,
    }
    return np.stack([found[name] * np.ones(len(f)) for name in CYCLES], axis=1)


def _runs(f: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """How often the nest of each level runs, the innermost first."""
    trips = f[:, _COLUMN["trips"]]
    runs = []
    for level in range(LEVELS):
        # Intensity is the trips inside of a nest over its bytes.
        inside = f[:, _COLUMN[f"intensity.{level}"]] * np.maximum(f[:, _COLUMN[f"bytes.{level}"]], 1)
        runs.append(trips / np.maximum(inside, 1))
    return runs


def _streamed(
    f: NDArray[np.float64], runs: Sequence[NDArray[np.float64]], felt: str, room: float, counted: str
) -> NDArray[np.float64]:
    """What comes into a store with `room`: the innermost nest whose `felt` column is larger streams its
    `counted` column through, once for each time it runs; when all fits, everything comes in once."""
    out = np.zeros(len(f))
    open_ = np.ones(len(f), bool)
    for level, times in enumerate(runs):
        stops = open_
        if level < LEVELS - 1:
            stops = open_ & (f[:, _COLUMN[f"{felt}.{level}"]] > room)
        out = np.where(stops, times * f[:, _COLUMN[f"{counted}.{level}"]], out)
        open_ = open_ & ~stops
        if not open_.any():
            break
    return out
