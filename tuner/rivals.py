"""What other jobs have left for the key of a search: it is timed against the search's best in the end."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ..db import records
from ..db.errors import NotFound
from ..db.store import Store
from .candidate import Candidate
from .crown import Crowned
from .outcome import Outcome, Trial

__all__ = ["Rivals", "rivals_of"]

FAULTS = ("build_error", "run_error", "wrong_output")
"""How a candidate fails by itself: one that does so now is no longer what it was when it became best."""


@dataclass(frozen=True, slots=True, eq=False)
class Rivals:
    """The best-known schedule of another job and its challenger, as trials with numbers below 0; `ids` are
    those of the store, by number."""

    trials: tuple[Trial, ...] = ()
    ids: Mapping[int, str] | None = None

    def id_of(self, number: int) -> str | None:
        return None if self.ids is None else self.ids.get(number)

    def times(self, crowned: Crowned, winner: str) -> dict[str, tuple[float, ...]]:
        """What `winner`, the id of the search's own best, and the rivals took in turn, by id: empty unless
        each of two at least was timed twice, once before and once after another."""
        own = crowned.times.get(crowned.winner.candidate.number, ())
        found = {winner: own}
        found |= {one: crowned.times.get(number, ()) for number, one in (self.ids or {}).items()}
        found = {one: taken for one, taken in found.items() if len(taken) >= 2}
        return found if winner in found and len(found) >= 2 else {}

    def faults(self, crowned: Crowned) -> Iterable[tuple[str, str]]:
        """Ids of rivals that failed now by themselves, and how."""
        for number, one in (self.ids or {}).items():
            outcome = crowned.failed.get(number)
            if outcome is not None and outcome.failure in FAULTS:
                said = f": {outcome.message}" if outcome.message else ""
                yield one, f"{outcome.failure} when it was timed again{said}"


def rivals_of(store: Store, job: records.Job, own: Iterable[Candidate]) -> Rivals:
    """What stands for the job's key by other jobs, and what challenges it. A candidate of the search itself
    is no rival of it: it is the same schedule."""
    if job.hardware is None:
        return Rivals()
    stands = store.standing(job.workload, job.target, job.hardware)
    if stands is None:
        return Rivals()
    ids = [stands.trial, *([stands.challenger.trial] if stands.challenger else [])]
    mine = {candidate.key for candidate in own}
    found = [
        trial for trial in _stored(store, ids) if trial.job != job.id and trial.candidate_key not in mine
    ]
    trials = [_as_trial(-1 - n, trial) for n, trial in enumerate(found) if trial.seconds is not None]
    return Rivals(tuple(trials), {-1 - n: trial.id for n, trial in enumerate(found)})


def _stored(store: Store, ids: Iterable[str]) -> Iterator[records.Trial]:
    """Those that are there: one may be forgotten between the reading of its id and that of itself."""
    for one in ids:
        with contextlib.suppress(NotFound):
            yield store.trial(one)


def _as_trial(number: int, stored: records.Trial) -> Trial:
    assert stored.seconds is not None, "what is best-known has a time"
    candidate = Candidate(number, -1, stored.sketch, None, stored.trace, stored.candidate_key, None)
    return Trial(candidate, Outcome.timed(stored.seconds, samples=stored.samples, error=stored.error))
