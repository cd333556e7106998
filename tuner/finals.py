"""The final rounds of a stored job, which workers measure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from ..db.records import Job, Retiming
from ..db.store import Store
from .crown import Crowned, Crowning
from .outcome import Outcome, Trial

__all__ = ["SILENCE_SECONDS", "StoredFinals"]

SILENCE_SECONDS = 60.0
"""So long without a result and the final rounds are over as they stand: the search itself has all it needs,
and its workers may be gone."""

_TURNS = 64


@dataclass(slots=True)
class StoredFinals:
    """Has the fastest trials of a job timed again, round by round. Nothing is kept but in the store: begun
    again, it goes on where the stored rounds leave off.

    `halted` says whether somebody has ended the job, `paused` whether nobody measures for now.
    """

    store: Store
    job: Job
    epoch: int
    clock: Callable[[], float]
    sleep: Callable[[float], None]
    halted: Callable[[], bool]
    paused: Callable[[], bool]
    poll_seconds: float
    crowning: Crowning = field(default_factory=Crowning)

    def run(self, history: Sequence[Trial]) -> Crowned | None:
        """The best; with times of its own only where there was something to decide, and workers to do it."""
        final = self._crowning().final(history)
        if not all(self._has_worker(trial) for trial in final.contenders):
            return final.crowned
        # An extended job has final rounds once more, of other trials.
        first = len(history) * _TURNS
        while due := final.due:
            outcomes = self._round(first + final.turn, [trial.candidate.number for trial in due])
            if outcomes is None:
                break
            final.take(outcomes)
        return final.crowned

    def _crowning(self) -> Crowning:
        """Where a worker has become slower, the fastest trial may be one that was merely measured before
        that: those within the drift of it are timed again, and be it alone."""
        drift = max((abs(b.drift) for b in self.store.baselines(self.job.id) if b.drifted), default=0.0)
        if not drift:
            return self.crowning
        return replace(self.crowning, within=max(self.crowning.within, drift), always=True)

    def _has_worker(self, trial: Trial) -> bool:
        """Whether a worker measured it, and not a user's own program elsewhere."""
        number = trial.candidate.number
        return any(t.worker is not None for t in self.store.trials(self.job.id, number - 1, 1))

    def _round(self, turn: int, numbers: Sequence[int]) -> list[Outcome] | None:
        """What came of each, in order; None where nothing comes any more."""
        self.store.time_again(self.job.id, self.epoch, turn, numbers)
        done, heard = -1, self.clock()
        while True:
            found = {r.number: r for r in self.store.retimings(self.job.id) if r.turn == turn}
            settled = [found[number] for number in numbers if found[number].outcome != "pending"]
            if len(settled) == len(numbers):
                return [_outcome(retiming) for retiming in settled]
            if self.halted():
                return None
            if len(settled) != done or self.paused():
                done, heard = len(settled), self.clock()
            if self.clock() - heard >= SILENCE_SECONDS:
                return None
            self.sleep(self.poll_seconds)


def _outcome(retiming: Retiming) -> Outcome:
    if retiming.seconds is None:
        return Outcome(failure=retiming.outcome)
    return Outcome.timed(retiming.seconds, samples=retiming.samples)
