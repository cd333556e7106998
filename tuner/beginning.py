"""How a session begins: with what users suggest, and with what is known from earlier searches."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..db.records import Job
from ..db.store import HistoryStore
from .budget import Budget
from .candidate import Candidate
from .session import BATCH, TuningSession
from .strategies import SearchStrategy
from .suggested import SUGGESTED, TRANSFERRED, Suggestions, suggestions_of
from .task import TuningTask
from .time_split import Stopwatch
from .warm_start import Snapshot, WarmStart, recall

__all__ = ["Beginning", "suggested_in"]


@dataclass(frozen=True, slots=True, eq=False)
class Beginning:
    """Makes the session of a task: the same one from the same snapshot, however often."""

    asked: Suggestions = field(default_factory=Suggestions)
    warm: WarmStart = field(default_factory=WarmStart)

    @classmethod
    def of(
        cls,
        task: TuningTask,
        suggested: Sequence[Mapping[str, Any]] = (),
        snapshot: Snapshot | None = None,
        store: HistoryStore | None = None,
    ) -> Beginning:
        """Raises SuggestionRefused."""
        asked = suggestions_of(task, suggested)
        if snapshot is None or store is None:
            return cls(asked)
        return cls(asked, recall(snapshot, store, task))

    def session(
        self,
        task: TuningTask,
        strategy: SearchStrategy,
        budget: Budget,
        seed: int,
        adopted: Sequence[Candidate] = (),
        watch: Stopwatch | None = None,
        batch: int = BATCH,
    ) -> TuningSession:
        points = [(point.sketch, point.row, SUGGESTED) for point in self.asked.points]
        points += [(point.sketch, point.row, TRANSFERRED) for point in self.warm.transferred]
        return TuningSession(
            task.space,
            strategy,
            budget,
            target=task.target_key,
            codegen=task.codegen,
            seed=seed,
            batch_size=batch,
            defaults=task.defaults,
            adopted=adopted,
            suggestions=points,
            outside=self.asked.outside,
            known=self.warm.known,
            prior=self.warm.prior,
            costs=task.costs,
            feature_schema=task.feature_schema,
            watch=watch,
        )


def suggested_in(job: Job) -> Sequence[Mapping[str, Any]]:
    """What the request of a stored job suggests."""
    suggested = json.loads(job.spec).get("suggestions")
    return suggested if isinstance(suggested, list) else ()
