"""The quality of a session's cost model, batch by batch as the results come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from .cost_model.quality import Metrics, available_metrics
from .model_quality import ModelQuality, QualityLog, RoundQuality
from .outcome import Trial
from .session import TuningSession

__all__ = ["ModelWatch"]


class ModelWatch:
    """Looks at each batch of a session once, in order, when all its trials are told."""

    def __init__(self, session: TuningSession, metrics: Metrics | None = None) -> None:
        self._session = session
        self._log = QualityLog(metrics or available_metrics())
        self._seen = 0

    def skip(self, batch: int) -> None:
        """Looks at the batches up to this one without a word."""
        while self._told() and self._told()[0].candidate.batch <= batch:
            self._log.add(self._take())

    def fresh(self, *, last: bool = False) -> Iterator[RoundQuality]:
        """The quality of what was not looked at yet. `last`: the session has ended, and what is told of a
        batch is all that will be."""
        for batch in self._left() if last else self._whole():
            quality = self._log.add(batch)
            if quality is not None:
                yield quality

    def _whole(self) -> Iterator[Sequence[Trial]]:
        while self._told():
            yield self._take()

    def _told(self) -> Sequence[Trial]:
        return self._session.told_batch(self._seen)

    def _take(self) -> Sequence[Trial]:
        batch = self._told()
        self._seen = batch[-1].candidate.number + 1
        return batch

    def _left(self) -> Iterator[Sequence[Trial]]:
        left = (trial for trial in self._session.history if trial.candidate.number >= self._seen)
        for _, batch in groupby(left, lambda trial: trial.candidate.batch):
            yield list(batch)
        self._seen = self._session.asked

    @property
    def quality(self) -> ModelQuality:
        """Over all batches that were looked at."""
        return self._log.quality
