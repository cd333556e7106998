"""The final rounds of a stored job, which workers measure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from ..db import records
from ..db.fleet_records import Worker, labels_of
from ..db.records import Job, Retiming
from ..db.store import Store
from ..db.words import PRESENT_STATES
from .crown import Crowned, Crowning
from .outcome import Outcome, Trial
from .rivals import FAULTS, Rivals, rivals_of

__all__ = ["CONFIRMING_SECONDS", "SILENCE_SECONDS", "StoredFinals"]

SILENCE_SECONDS = 60.0
"""So long without a result and the final rounds are over as they stand: the search itself has all it needs,
and its workers may be gone."""

CONFIRMING_SECONDS = 20.0
"""So long without a result and the best stays unconfirmed: the second device has other work."""

_TURNS = 64
_CONFIRMING = 32
_RETIRED = 100


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
        """The best; with times of its own only where there was something to decide, and workers to do it.

        Where it wins, it is best-known from now on: what another job left as such was timed in the same
        rounds, on the same device. A second device of the kind, where there is one, confirms it.
        """
        rivals = rivals_of(self.store, self.job, (trial.candidate for trial in history))
        retired = self._retired()
        served = [trial for trial in history if trial.candidate.key not in retired]
        final = self._crowning().final(served, rivals.trials)
        stored = {t.candidate.number: self._stored(t, rivals) for t in final.contenders}
        if not all(trial.worker is not None for n, trial in stored.items() if n >= 0):
            return final.crowned  # a user's own program measured them elsewhere
        device = self._device([trial.worker for trial in stored.values()])
        # An extended job has final rounds once more, of other trials.
        first = len(history) * _TURNS
        while due := final.due:
            ids = [stored[trial.candidate.number].id for trial in due]
            outcomes = self._round(first + final.turn, ids, device, SILENCE_SECONDS)
            if outcomes is None:
                break
            final.take(outcomes)
        crowned = final.crowned
        if crowned is not None:
            self._write(crowned, rivals, stored[crowned.winner.candidate.number], device)
            self._confirm(first + _CONFIRMING, rivals, device)
        return crowned

    def _retired(self) -> set[str]:
        """Candidates of this key that are not served any more, maybe since another job found a fault."""
        key = self.job.workload, self.job.target, self.job.hardware or ""
        return {
            self.store.trial(one.trial).candidate_key for one in self.store.retirements(*key, limit=_RETIRED)
        }

    def _crowning(self) -> Crowning:
        """Where a worker has become slower, the fastest trial may be one that was merely measured before
        that: those within the drift of it are timed again, and be it alone."""
        drift = max((abs(b.drift) for b in self.store.baselines(self.job.id) if b.drifted), default=0.0)
        if not drift:
            return self.crowning
        return replace(self.crowning, within=max(self.crowning.within, drift), always=True)

    def _stored(self, trial: Trial, rivals: Rivals) -> records.Trial:
        number = trial.candidate.number
        if (rival := rivals.id_of(number)) is not None:
            return self.store.trial(rival)
        (found,) = self.store.trials(self.job.id, number - 1, 1)
        return found

    def _device(self, used: Sequence[str | None], but: str | None = None) -> str | None:
        """A worker that is there, the first of those that were used before others; None where none is."""
        there = [worker.id for worker in self.store.workers() if self._may_do(worker)]
        found = [worker for worker in (*used, *there) if worker in there and worker != but]
        return next(iter(found), None)

    def _may_do(self, worker: Worker) -> bool:
        """Whether a worker is there, and the job's trials are for it."""
        job = self.job
        serves = job.pool in (None, worker.pool) and labels_of(job.labels) <= labels_of(worker.labels)
        return serves and worker.hardware == job.hardware and worker.state in PRESENT_STATES

    def _write(self, crowned: Crowned, rivals: Rivals, winner: records.Trial, device: str | None) -> None:
        store, job, epoch = self.store, self.job.id, self.epoch
        if taken := crowned.times.get(winner.number):
            store.crown(job, epoch, winner.number, taken)
        for trial, reason in rivals.faults(crowned):
            store.retire(trial, reason)
        if times := rivals.times(crowned, winner.id):
            store.decide(job, epoch, times, device)

    def _confirm(self, turn: int, rivals: Rivals, device: str | None) -> None:
        """Have a second device check what this job has made best-known, and time it: against what it has
        taken the place of, where there is such."""
        assert self.job.hardware is not None, "a job whose trials were measured is bound to hardware"
        best = self.store.standing(self.job.workload, self.job.target, self.job.hardware)
        if best is None or best.job != self.job.id or best.confirmed:
            return
        second = self._device([], but=device or best.worker)
        if second is None or second == best.worker:
            return
        beaten = [one for one in (rivals.ids or {}).values() if self._may_be_timed(one)]
        ids, times = [best.trial, *beaten], dict[str, list[float]]()
        for n in range(2 if beaten else 1):
            outcomes = self._round(turn + n, ids[:: -1 if n else 1], second, CONFIRMING_SECONDS)
            for trial, outcome in zip(ids[:: -1 if n else 1], outcomes or (), strict=False):
                if trial == best.trial and outcome.failure in FAULTS:
                    said = f"{outcome.failure} on a second device, worker {second}: {outcome.message}"
                    self.store.retire(trial, said)
                    return
                if outcome.seconds is not None:
                    times.setdefault(trial, []).append(outcome.seconds)
        medians = {trial: median(taken) for trial, taken in times.items()}
        if best.trial in medians and medians[best.trial] == min(medians.values()):
            self.store.confirm(self.job.id, self.epoch, best.trial, second, medians[best.trial])

    def _may_be_timed(self, trial: str) -> bool:
        found = self.store.trial(trial)
        return found.outcome == "ok" and found.candidate_key not in self._retired()

    def _round(
        self, turn: int, ids: Sequence[str], device: str | None, patience: float
    ) -> list[Outcome] | None:
        """What came of each, in order; None where nothing comes any more. One that another job has asked for
        since, in a duel of its own, is out: who stands then stays, and the challenger is timed some other
        time."""
        self.store.time_again(self.job.id, self.epoch, turn, ids, device)
        done, heard = -1, self.clock()
        while True:
            found = {r.trial: r for r in self.store.retimings(self.job.id) if r.turn == turn}
            settled = [found.get(one) for one in ids if one not in found or found[one].outcome != "pending"]
            if len(settled) == len(ids):
                return [_outcome(retiming) for retiming in settled]
            if self.halted():
                return None
            if len(settled) != done or self.paused():
                done, heard = len(settled), self.clock()
            if self.clock() - heard >= patience:
                return None
            self.sleep(self.poll_seconds)


def _outcome(retiming: Retiming | None) -> Outcome:
    if retiming is None:
        return Outcome(failure="cancelled")
    if retiming.seconds is None:
        return Outcome(failure=retiming.outcome)
    return Outcome.timed(retiming.seconds, samples=retiming.samples)
