"""Whether a device stays the same while it measures one batch."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .messages import MeasureResult

__all__ = ["BATCH_DRIFT", "BatchBaseline"]

BATCH_DRIFT = 0.10
"""A baseline that is farther than this from the batch's first one makes its trial suspect."""


@dataclass(slots=True)
class BatchBaseline:
    """The baseline around the first timed item of a batch, to which those of later ones are compared.

    `is_steady`: the one before had not moved. Where a device has become slower for good, its items are not
    taken twice each, but called disturbed at once.
    """

    first: float | None = None
    is_steady: bool = True

    def moved(self, result: MeasureResult) -> bool:
        """Whether the baseline around a result is another than at first."""
        return abs(self._drift(result)) > BATCH_DRIFT

    def judged(self, result: MeasureResult) -> MeasureResult:
        """The result, marked where the baseline around it has moved; the batch's first one is its measure."""
        if self.first is None and result.baseline:
            self.first = _mean(result)
        drift = self._drift(result)
        if abs(drift) <= BATCH_DRIFT:
            self.is_steady = self.is_steady or bool(result.baseline)
            return result
        self.is_steady = False
        words = f"the baseline is {drift:+.0%} from the batch's first"
        return replace(result, disturbed=True, disturbance=result.disturbance or words)

    def _drift(self, result: MeasureResult) -> float:
        if self.first is None or not result.baseline:
            return 0.0
        return _mean(result) / self.first - 1.0


def _mean(result: MeasureResult) -> float:
    return sum(result.baseline) / len(result.baseline)
