"""What a search needs of a cost model."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..candidate import Features
from .training import TrainingSet

__all__ = ["CostModel", "Scores"]

Scores = NDArray[np.float32]
"""One per row: the best time over this one's, from 0 (failed) to 1 (the best)."""


class CostModel(Protocol):
    """Learns scores and predicts them."""

    @property
    def name(self) -> str:
        """What to call it before a user, with its version or why it was chosen."""

    def update(self, training: TrainingSet) -> None:
        """Learn anew from these rows alone: nothing is kept of earlier ones."""

    def extend(self, training: TrainingSet, new: int) -> None:
        """Learn these rows on top of what is known already, `new` of them being new since: in time
        proportional to that number. A function of what it was taught before and of these."""

    def predict(self, features: Features) -> Scores:
        """The scores of the rows; only their order matters."""

    def predict_each(self, features: Features) -> NDArray[np.float32]:
        """What each member of the model says: shape (members, rows). Their mean is `predict`; how far they
        are apart is how little is known of a row."""
