"""What a session proposes next: points of its space, each once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
import rfc8785
from numpy.random import Generator

from .candidate import Candidate, candidate_key
from .estimate import Estimate, Estimated
from .outcome import Trial
from .pool import Pool, nothing_legal
from .prior import Prior
from .space import TuningSpace
from .strategies import Point, SearchStrategy, View
from .suggested import SUGGESTED, TRANSFERRED
from .task import Replayed
from .time_split import Stopwatch

__all__ = ["Proposals"]

NEAR = 1.1
"""As long as what was fast for related workloads is within this of the best, more of it is tried."""

REJECTED = 1000
"""How many proposed points that turn out to be known by their key are passed over in one ask."""


class Proposals:
    """The points that are left of a space, and in which order they are tried: what users suggest, a few of
    what was fast elsewhere, and what the strategy proposes.

    `target`, `codegen`, `defaults`, `suggestions`, `outside`, `prior` and `costs`: see TuningSession.
    """

    def __init__(
        self,
        space: TuningSpace,
        strategy: SearchStrategy,
        *,
        target: str,
        codegen: str,
        defaults: Sequence[tuple[str, tuple[int, ...]]],
        suggestions: Sequence[tuple[str, tuple[int, ...], str]],
        outside: Sequence[Replayed],
        prior: Prior | None,
        costs: Estimated | None,
        watch: Stopwatch,
    ) -> None:
        self._space = space
        self._strategy = strategy
        self._target = target
        self._codegen = codegen
        self._watch = watch
        self._pools = [Pool(index, sketch, watch) for index, sketch in enumerate(space.sketches)]
        self._by_name = {pool.sketch.name: pool for pool in self._pools}
        self._keys: set[str] = set()
        self._defaults = [self._point(name, row, "default") for name, row in defaults]
        self._suggestions = [self._point(name, row, origin) for name, row, origin in suggestions]
        self._outside = list(outside)
        self._prior = prior
        chosen = [self._pools[point.pool].features(point.row[None, :])[0] for point in self._defaults]
        self._estimate = Estimate.of(costs, chosen)

    def take(self, candidate: Candidate) -> None:
        """Never propose it again."""
        self._keys.add(candidate.key)
        if candidate.row is not None:
            self._by_name[candidate.sketch].take(np.array(candidate.row, dtype=np.int64))

    def next(
        self, batch: int, size: int, count: int, history: Sequence[Trial], number: int, rng: Generator
    ) -> list[Candidate]:
        """The first `count` of a batch of `size`, numbered from `number` on; fewer where nothing new is left.
        The strategy does not see where the budget ends, so that a larger one would have begun in the same
        way."""
        chosen = self._from_outside(batch, count, number)
        if len(chosen) == count:
            return chosen
        view = View(batch, self._pools, self._defaults, history, self._prior, self._watch, self._estimate)
        rejected = 0
        proposed = self._strategy.propose(view, size, rng)
        for point in chain(self._queued(size, history), proposed):
            pool = self._pools[point.pool]
            if not pool.legal(point.row) or pool.taken(point.row):
                continue
            pool.take(point.row)
            candidate = self._concrete(point, batch, number + len(chosen))
            if candidate.key in self._keys:
                # Two configurations, or two sketches, may come to the same schedule.
                rejected += 1
                if rejected >= REJECTED:
                    break
                continue
            self._keys.add(candidate.key)
            chosen.append(candidate)
            if len(chosen) == count:
                break
        return chosen

    def exhausted(self, total: int) -> str:
        """Why a search of `total` candidates ends without more."""
        if all(pool.enumerable for pool in self._pools):
            return f"the space has no more than {total} candidates"
        return f"nothing new was found in the space beyond {total} candidates"

    def nothing_legal(self, rng: Generator) -> Exception:
        """Why there is no candidate at all."""
        return nothing_legal(self._pools, self._space.refused, rng)

    def _point(self, sketch: str, row: tuple[int, ...], origin: str) -> Point:
        return Point(self._by_name[sketch].index, np.array(row, dtype=np.int64), origin=origin)

    def _from_outside(self, batch: int, count: int, number: int) -> list[Candidate]:
        chosen: list[Candidate] = []
        for schedule in self._outside:
            key = candidate_key(self._space.workload_key, schedule.canonical, self._target, self._codegen)
            if key in self._keys or len(chosen) == count:
                continue
            self._keys.add(key)
            chosen.append(
                Candidate(
                    number=number + len(chosen),
                    batch=batch,
                    sketch=SUGGESTED,
                    row=None,
                    trace=schedule.trace,
                    key=key,
                    features=schedule.features,
                    origin=SUGGESTED,
                )
            )
        return chosen

    def _queued(self, count: int, history: Sequence[Trial]) -> Iterator[Point]:
        """Points to be proposed ahead of the strategy's. What was fast elsewhere may be slow here: it leaves
        room for others, and no more of it is tried once that shows."""
        room = max(1, count // 4) if _pays(history) else 0
        for point in self._suggestions:
            if self._pools[point.pool].taken(point.row):
                continue
            if point.origin != SUGGESTED:
                if room == 0:
                    continue
                room -= 1
            yield point

    def _concrete(self, point: Point, batch: int, number: int) -> Candidate:
        pool = self._pools[point.pool]
        with self._watch.part("generate"):
            trace = pool.sketch.resolve(point.row)
            text, canonical = rfc8785.dumps(trace.to_json()).decode(), trace.canonical_json()
        return Candidate(
            number=number,
            batch=batch,
            sketch=pool.sketch.name,
            row=tuple(int(value) for value in point.row),
            trace=text,
            key=candidate_key(self._space.workload_key, canonical, self._target, self._codegen),
            features=pool.features(point.row[None, :])[0],
            predicted=point.predicted,
            origin=point.origin,
        )


def _pays(history: Sequence[Trial]) -> bool:
    """Whether what was transferred comes near to the best, or was not measured yet."""
    times = [(t.outcome.seconds, t.candidate.origin) for t in history if t.outcome.seconds is not None]
    known = [seconds for seconds, origin in times if origin == TRANSFERRED]
    return not known or min(known) <= NEAR * min(seconds for seconds, _ in times)
