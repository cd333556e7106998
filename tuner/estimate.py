"""What rules say of a candidate before anything of its workload is measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from .candidate import Features

__all__ = ["Estimate", "Estimated"]

Estimated = Callable[[Features], NDArray[np.float64]]
"""Of rows of features, shape (n, features), what each costs by rules, shape (n,), above 0 and in any unit."""


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """Costs by rules as scores: `least` over a row's cost, so that what rules would choose has about 1."""

    costs: Estimated
    least: float

    @classmethod
    def of(cls, costs: Estimated | None, chosen: Sequence[Features]) -> Self | None:
        """Beside the rows that rules choose; None without rules, or where they choose nothing."""
        if costs is None or not len(chosen):
            return None
        return cls(costs, float(costs(np.stack(chosen)).min()))

    def scores(self, features: Features) -> NDArray[np.float32]:
        """Of candidates of this search."""
        return np.asarray(self.least / self.costs(features), dtype=np.float32)

    def scores_within(self, features: Features, groups: NDArray[np.int64]) -> NDArray[np.float32]:
        """Of rows of other workloads: the least cost of a row's group over its own."""
        costs = self.costs(features)
        _, group = np.unique(groups, return_inverse=True)
        least = np.full(group.max(initial=-1) + 1, np.inf)
        np.minimum.at(least, group, costs)
        return np.asarray(least[group] / costs, dtype=np.float32)
