"""Timing the fastest few once more before one of them is called the best.

The least of many noisy readings is often the luckiest, not the fastest: of 60 readings it looks about 4 %
faster than it is. So contenders within a few percent are measured again in turn, each time in a fresh process
and under the same conditions, and the medians decide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from .outcome import Outcome, Trial

__all__ = ["Crowned", "Crowning"]


SOLO_ROUNDS = 3
"""Rounds of a fastest trial that has no rival, where it is timed again for another reason."""


@dataclass(frozen=True, slots=True)
class Crowned:
    """The winner among the search's own, and the times that each contender and each rival took in the final
    rounds, by trial number; rivals' are below 0. `times` is empty where there was nothing to decide; the
    winner's seconds are then those of the search. `failed`: how others failed now."""

    winner: Trial
    times: dict[int, tuple[float, ...]] = field(default_factory=dict)
    failed: dict[int, Outcome] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        taken = self.times.get(self.winner.candidate.number)
        if taken:
            return median(taken)
        assert self.winner.outcome.seconds is not None, "only a trial with a time is crowned"
        return self.winner.outcome.seconds


@dataclass(frozen=True, slots=True)
class Crowning:
    """`finalists` trials within `within` of the fastest are timed in `rounds` rounds, in alternating order so
    that a drift of the machine favours nobody. From the second round on, one whose every time is above all
    times of the leader drops out. What stands as best-known by another search is timed among them.
    `always`: even a fastest trial that has no rival is timed again."""

    finalists: int = 3
    within: float = 0.05
    rounds: int = 5
    always: bool = False

    def contenders(self, history: Sequence[Trial]) -> list[Trial]:
        """The fastest trials that have a time of their own, fastest first."""
        timed = [
            (trial.outcome.seconds, trial)
            for trial in history
            if trial.outcome.exact and trial.outcome.seconds is not None
        ]
        timed.sort(key=lambda pair: (pair[0], pair[1].candidate.number))
        limit = timed[0][0] * (1 + self.within) if timed else 0.0
        return [trial for seconds, trial in timed[: self.finalists] if seconds <= limit]

    def final(self, history: Sequence[Trial], rivals: Sequence[Trial] = ()) -> Final:
        """The final rounds of these trials, before the first of them. `rivals` are of other searches, with
        numbers below 0: they take part where the fastest comes near to one or leaves it behind, and where
        they are several, between which nobody has decided."""
        contenders = self.contenders(history)
        if contenders and (len(rivals) > 1 or any(self._comes_near(contenders[0], one) for one in rivals)):
            contenders += rivals
        alone = SOLO_ROUNDS if self.always and contenders else 0
        return Final(contenders, self.rounds if len(contenders) > 1 else alone)

    def _comes_near(self, own: Trial, rival: Trial) -> bool:
        return (rival.outcome.seconds or 0.0) * (1 + self.within) >= (own.outcome.seconds or 0.0)

    def crown(
        self,
        history: Sequence[Trial],
        measure: Callable[[Trial], Outcome],
        rivals: Sequence[Trial] = (),
    ) -> Crowned | None:
        """The best of all trials; None where none has a time. `measure` times a trial's candidate again, with
        no early stop; one that fails now is out."""
        final = self.final(history, rivals)
        while due := final.due:
            final.take([measure(trial) for trial in due])
        return final.crowned


@dataclass(slots=True)
class Final:
    """Rounds among the contenders, fastest first: `due` says who is timed next, and in which order, `take`
    what came of it, and `crowned` who stands best. It depends on nothing else, so that who is told the same
    again comes to the same."""

    contenders: Sequence[Trial]
    rounds: int
    turn: int = 0
    racing: list[Trial] = field(init=False)
    times: dict[int, list[float]] = field(init=False)
    failed: dict[int, Outcome] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.racing = list(self.contenders)
        self.times = {trial.candidate.number: [] for trial in self.contenders}

    @property
    def due(self) -> list[Trial]:
        """Whom this round is among, in its order; empty once it is decided."""
        if self.turn >= self.rounds or len(self.racing) < min(2, len(self.contenders)):
            return []
        return self.racing[:: -1 if self.turn % 2 else 1]

    def take(self, outcomes: Sequence[Outcome]) -> None:
        """What came of the round, in the order of `due`."""
        for trial, outcome in zip(self.due, outcomes, strict=True):
            if outcome.seconds is None:
                del self.times[trial.candidate.number]
                self.failed[trial.candidate.number] = outcome
            else:
                self.times[trial.candidate.number].append(outcome.seconds)
        self.racing = [trial for trial in self.racing if trial.candidate.number in self.times]
        if self.turn >= 1:
            self.racing = _in_the_race(self.racing, self.times)
        self.turn += 1

    @property
    def crowned(self) -> Crowned | None:
        """The best of the search's own as it stands; None where there was no contender."""
        final = {number: tuple(taken) for number, taken in self.times.items() if taken}
        timed = _own(self.racing, final) or _own(self.contenders, final)
        if not timed:
            return Crowned(self.contenders[0], failed=self.failed) if self.contenders else None
        winner = min(timed, key=lambda trial: (median(final[trial.candidate.number]), trial.candidate.number))
        return Crowned(winner, final, self.failed)


def _own(trials: Sequence[Trial], timed: Mapping[int, tuple[float, ...]]) -> list[Trial]:
    return [trial for trial in trials if trial.candidate.number >= 0 and trial.candidate.number in timed]


def _in_the_race(racing: Sequence[Trial], times: dict[int, list[float]]) -> list[Trial]:
    if not racing:
        return []
    leader = min(racing, key=lambda trial: median(times[trial.candidate.number]))
    slowest = max(times[leader.candidate.number])
    return [trial for trial in racing if min(times[trial.candidate.number]) <= slowest]
