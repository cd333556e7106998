"""Which of several tasks gets the next trials: the one in which they promise to save the most time.

The time to be made small is the weighted sum of the tasks' best times. What trials of a task promise is the
gradient of that sum (Zheng et al., "Ansor: Generating High-Performance Tensor Programs for Deep Learning",
OSDI 2020, section 6 and appendix A), with g the best seconds of task i after t rounds, w its weight, C its
operations, and V the operations a second of the tasks that are like it:

    w * (alpha * (g(t) - g(t - window)) / window + (1 - alpha) * min(-g(t) / t, beta * C / max(V) - g(t)))

The first term is what the last rounds have gained. The second is optimistic: another t rounds would bring the
time to nothing, or the task comes to a good part of the best speed of one like it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Share", "TaskScheduler", "Turn", "Why"]

ALPHA = 0.2
"""The weight of what was gained against what is hoped for; this and the next two are Ansor's."""

BETA = 2.0
"""A task is expected to come to one BETA-th of the best speed of those like it."""

WINDOW = 3.0
"""Rounds to look back on."""

ROUND = 8
"""Trials that count as one round."""

HOPELESS = 4
"""A task that has had so many turns and no time is left until no other one wants trials."""

Why = Literal["warm-up", "gradient", "the only one", "no time yet"]


@dataclass(frozen=True, slots=True)
class Share:
    """A task as the scheduler sees it. `kind`: tasks of one kind (but the empty one) come to similar speeds.
    `flops`: operations of one call, None where they are not known."""

    name: str
    weight: float = 1.0
    flops: float | None = None
    kind: str = ""

    def __post_init__(self) -> None:
        number = isinstance(self.weight, int | float) and not isinstance(self.weight, bool)
        if not (number and math.isfinite(self.weight) and self.weight > 0):
            raise ValueError(f"the weight of task {self.name!r} is finite and above 0, not {self.weight!r}")


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a task: why it had it, and what it promised then (seconds saved by a round; None where that
    did not decide)."""

    task: int
    why: Why
    promise: float | None = None


@dataclass(slots=True)
class _Standing:
    """Trials and best seconds after each turn; `over` once the task wants no more."""

    trials: list[int] = field(default_factory=lambda: [0])
    best: list[float] = field(default_factory=lambda: [math.inf])
    over: bool = False

    @property
    def turns(self) -> int:
        return len(self.trials) - 1

    def rounds_before(self, window: float) -> tuple[float, float]:
        """Rounds since the last turn that is at least `window` rounds ago (else since the first one that gave
        a time), and what they have gained."""
        now = self.trials[-1]
        known = [n for n in range(1, len(self.trials)) if math.isfinite(self.best[n])]
        ago = [n for n in known if now - self.trials[n] >= window * ROUND] or known[:1]
        at = ago[-1]
        return (now - self.trials[at]) / ROUND, self.best[at] - self.best[-1]


class TaskScheduler:
    """Is told what each turn came to, and says whose turn is next. What it says is a function of that alone.

    Each task has `warm_up` turns first, one after the other.
    """

    def __init__(self, tasks: Sequence[Share], *, warm_up: int = 1) -> None:
        if warm_up < 1:
            raise ValueError(f"each task is warmed up for at least 1 turn, not {warm_up}")
        self._tasks = tuple(tasks)
        self._warm_up = warm_up
        self._standings = [_Standing() for _ in tasks]

    def next(self) -> Turn | None:
        """Whose turn is next; None where no task wants one."""
        able = [n for n, standing in enumerate(self._standings) if not standing.over]
        if not able:
            return None
        if len(able) == 1:
            return Turn(able[0], "the only one")
        cold = [n for n in able if self._standings[n].turns < self._warm_up]
        if cold:
            return Turn(min(cold, key=lambda n: self._standings[n].turns), "warm-up")
        timeless = [n for n in able if math.isinf(self._standings[n].best[-1])]
        hopeful = [n for n in timeless if self._standings[n].turns < HOPELESS]
        if hopeful or len(timeless) == len(able):
            return Turn(min(hopeful or able, key=lambda n: self._standings[n].turns), "no time yet")
        promises = {n: self.promise(n) for n in able if n not in timeless}
        # Of equal promises the task with the fewest trials goes first.
        best = max(promises, key=lambda n: (promises[n], -self._standings[n].trials[-1], -n))
        return Turn(best, "gradient", promises[best])

    def told(self, task: int, trials: int, best: float | None) -> None:
        """What a turn came to: the trials of the task so far, and its best seconds."""
        standing = self._standings[task]
        standing.trials.append(trials)
        standing.best.append(math.inf if best is None else best)

    def over(self, task: int) -> None:
        """The task wants no more: it has converged, reached its target, or failed."""
        self._standings[task].over = True

    def promise(self, task: int) -> float:
        """Minus the gradient: weighted seconds that another round of a task with a time promises to save."""
        standing, share = self._standings[task], self._tasks[task]
        now, rounds = standing.best[-1], standing.trials[-1] / ROUND
        window, gained = standing.rounds_before(WINDOW)
        backward = gained / window if window else 0.0
        forward = now / rounds
        speed = self._speed_of_its_kind(task)
        if speed is not None and share.flops:
            forward = max(forward, now - BETA * share.flops / speed)
        return share.weight * (ALPHA * backward + (1 - ALPHA) * forward)

    def _speed_of_its_kind(self, task: int) -> float | None:
        """The most operations a second of the other tasks like this one."""
        kind = self._tasks[task].kind
        speeds = [
            share.flops / standing.best[-1]
            for n, (share, standing) in enumerate(zip(self._tasks, self._standings, strict=True))
            if n != task and kind and share.kind == kind and share.flops and math.isfinite(standing.best[-1])
        ]
        return max(speeds, default=None)
