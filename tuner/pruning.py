"""What the constraints of a space rule out before anything is built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .pool import SAMPLE, Pool
from .space import TuningSpace

__all__ = ["Pruning", "pruned"]


@dataclass(frozen=True, slots=True)
class Pruning:
    """One sketch: `legal` of its `configs` configurations satisfy every constraint; the rest is never built.

    `exact`: whether the legal ones were counted; else their number is estimated from a sample. `broken`: for
    each constraint, by its label, the share of the configurations that break it, most first, by themselves
    or along with others.
    """

    sketch: str
    configs: int
    legal: int
    exact: bool
    broken: Mapping[str, float]

    @property
    def pruned(self) -> int:
        """The configurations that constraints rule out."""
        return self.configs - self.legal

    def to_json(self) -> dict[str, Any]:
        """An item of `space` in the data of a `search` event."""
        return asdict(self)


def pruned(space: TuningSpace) -> tuple[Pruning, ...]:
    """What each sketch's constraints rule out: the same whenever it is asked for."""
    return tuple(_of(Pool(index, sketch)) for index, sketch in enumerate(space.sketches))


def _of(pool: Pool) -> Pruning:
    sample = pool.sample(SAMPLE, np.random.default_rng(0))
    if pool.enumerable:
        legal = len(pool.points())
    else:
        legal = round(int(np.count_nonzero(pool.columns.valid(sample))) / len(sample) * pool.size)
    broken = {label: count for label, count in pool.columns.violations(sample).items() if count}
    ranked = sorted(broken.items(), key=lambda item: (-item[1], item[0]))
    shares = {label: round(count / len(sample), 4) for label, count in ranked}
    return Pruning(pool.sketch.name, pool.size, legal, pool.enumerable, shares)
