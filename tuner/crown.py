"""Timing the fastest few once more before one of them is called the best.

The least of many noisy readings is often the luckiest, not the fastest: of 60 readings it looks about 4 %
faster than it is. So contenders within a few percent are measured again in turn, each time in a fresh process
and under the same conditions, and the medians decide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median

from .outcome import Outcome, Trial

__all__ = ["Crowned", "Crowning"]


SOLO_ROUNDS = 3
"""Rounds of a fastest trial that has no rival, where it is timed again for another reason."""


@dataclass(frozen=True, slots=True)
class Crowned:
    """The winner, and the times that each contender took in the final rounds, by trial number. `times` is
    empty where there was nothing to decide; the winner's seconds are then those of the search."""

    winner: Trial
    times: dict[int, tuple[float, ...]] = field(default_factory=dict)

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
    times of the leader drops out. `always`: even a fastest trial that has no rival is timed again."""

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

    def final(self, history: Sequence[Trial]) -> Final:
        """The final rounds of these trials, before the first of them."""
        contenders = self.contenders(history)
        alone = SOLO_ROUNDS if self.always and contenders else 0
        return Final(contenders, self.rounds if len(contenders) > 1 else alone)

    def crown(self, history: Sequence[Trial], measure: Callable[[Trial], Outcome]) -> Crowned | None:
        """The best of all trials; None where none has a time. `measure` times a trial's candidate again, with
        no early stop; one that fails now is out."""
        final = self.final(history)
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
            else:
                self.times[trial.candidate.number].append(outcome.seconds)
        self.racing = [trial for trial in self.racing if trial.candidate.number in self.times]
        if self.turn >= 1:
            self.racing = _in_the_race(self.racing, self.times)
        self.turn += 1

    @property
    def crowned(self) -> Crowned | None:
        """The best as it stands; None where there was no contender."""
        final = {number: tuple(taken) for number, taken in self.times.items() if taken}
        timed = [trial for trial in self.racing if trial.candidate.number in final]
        if not timed:
            return Crowned(self.contenders[0]) if self.contenders else None
        winner = min(timed, key=lambda trial: (median(final[trial.candidate.number]), trial.candidate.number))
        return Crowned(winner, final)


def _in_the_race(racing: Sequence[Trial], times: dict[int, list[float]]) -> list[Trial]:
    if not racing:
        return []
    leader = min(racing, key=lambda trial: median(times[trial.candidate.number]))
    slowest = max(times[leader.candidate.number])
    return [trial for trial in racing if min(times[trial.candidate.number]) <= slowest]
