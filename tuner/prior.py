"""What is known from other searches before the first trial of this one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .candidate import Features
from .errors import SchemaMismatch

__all__ = ["Prior"]


@dataclass(frozen=True, slots=True, eq=False)
class Prior:
    """Rows that other searches measured, for a cost model to begin with.

    features: float32, shape (n, columns), of this version's feature schema. scores: float32, shape (n,): the
    best time of its own workload on its own hardware over the row's time, 0 for a failure. groups: int64,
    shape (n,): which rows were measured for one workload on one kind of hardware; only within a group do
    scores compare. `says` names where the rows come from, for people; `schema` is the number of the features'
    schema, where it is known.
    """

    features: Features
    scores: NDArray[np.float32]
    groups: NDArray[np.int64]
    says: str = ""
    schema: int | None = None

    def __len__(self) -> int:
        return len(self.scores)

    def require(self, schema: int | None) -> None:
        """Raises SchemaMismatch where the features are known to be of another schema than this."""
        if self.schema is not None and schema is not None and self.schema != schema:
            says = self.says or "what other searches measured"
            raise SchemaMismatch(says, f"of schema {self.schema}", f"of schema {schema}")
