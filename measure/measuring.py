"""One item of a batch, from the runner to a result that a worker stands by."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Protocol

from .batch_baseline import BatchBaseline
from .errors import MeasureError
from .messages import Failure, MeasureInput, MeasureResult
from .words import clip, duration_of, tail_of

__all__ = ["Measures", "Measuring", "summary"]


class Measures(Protocol):
    """What a worker needs of a Runner."""

    def measure(self, item: MeasureInput, ahead: MeasureInput | None = None) -> MeasureResult: ...

    def cancel(self, item: str | None = None) -> None: ...


class Measuring:
    """Measures the items of one batch after the other. `say` takes lines for a person."""

    def __init__(self, runner: Measures, say: Callable[[str], None]) -> None:
        self._runner = runner
        self._say = say
        self._baseline = BatchBaseline()

    def begin_batch(self) -> None:
        self._baseline = BatchBaseline()

    def measure(self, item: MeasureInput, ahead: MeasureInput | None) -> MeasureResult:
        """The result of an item; `ahead` is the next one. Raises MeasureError where nothing can be measured.

        An item around which the baseline has moved is measured again, once, before it is called disturbed.
        """
        result = self._measured(item, ahead)
        if self._baseline.is_steady and self._baseline.moved(result):
            result = self._measured(item, None)
        return self._baseline.judged(result)

    def _measured(self, item: MeasureInput, ahead: MeasureInput | None) -> MeasureResult:
        try:
            return self._runner.measure(item, ahead)
        except MeasureError:
            raise
        except Exception as error:  # a bug here must not stop the job that waits for this item
            words = traceback.format_exc()
            self._say(words)
            message = clip(f"the worker failed: {type(error).__name__}: {error}")
            return MeasureResult.failed(item, Failure("worker_lost", message, last_words=tail_of(words)))


def summary(result: MeasureResult) -> str:
    """A result as a person says it."""
    if result.failure is not None:
        return f"{result.failure.kind}: {result.failure.message}"
    assert result.seconds is not None, "a result without failure has seconds"
    notes = " or more" * result.censored
    if result.disturbed:
        notes += f", disturbed: {result.disturbance}" if result.disturbance else ", disturbed"
    return duration_of(result.seconds) + notes
