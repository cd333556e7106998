"""A search that asks and is told: whoever uses it measures."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..compiler.ir import PrimFunc
from ..compiler.schedule import Trace
from ..compiler.space import KnobConstraint, SpaceFunction
from ..compiler.target import Target
from ..db.words import FAILURE_KINDS
from .beginning import Beginning
from .budget import Budget
from .candidate import Candidate
from .opening import open_task
from .outcome import Outcome, Trial
from .session import EndState
from .strategies import load_strategy
from .suggested import suggestion_json
from .task import TuningTask

__all__ = ["AskTell", "ask_tell"]


def ask_tell(
    func: PrimFunc,
    target: str | Mapping[str, Any] | Target = "llvm",
    trials: int = 64,
    *,
    space: SpaceFunction | None = None,
    constraints: Sequence[KnobConstraint] = (),
    target_seconds: float | None = None,
    patience: int | None = None,
    seed: int = 0,
    strategy: str = "guided",
    suggestions: Sequence[Trace | Mapping[str, Any]] = (),
) -> AskTell:
    """A search of `func` whose candidates you measure, in whatever way: see AskTell. The other arguments are
    those of `tune`, as are the errors. It lives as long as this process; a job of a server that was submitted
    with `measure="outside"` outlives it.

        search = tilewright.ask_tell(func, trials=32)
        while candidates := search.ask(4):
            for candidate in candidates:
                search.tell(candidate.number, my_seconds(search.trace(candidate)))
        best = search.best
    """
    task = open_task(func, Target.parse(target), space, constraints)
    budget = Budget(trials, None, target_seconds, patience)
    return AskTell(task, budget, strategy, seed, [suggestion_json(one) for one in suggestions])


class AskTell:
    """`ask` gives candidates, `tell` takes what came of them, in any order and at any time.

    A batch of candidates depends on the results of all batches but the last, so that a few can be out at a
    time: `ask` gives none while results are missing. The same results in the same order of trials make the
    same search.
    """

    def __init__(
        self,
        task: TuningTask,
        budget: Budget,
        strategy: str = "guided",
        seed: int = 0,
        suggested: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self._session = Beginning.of(task, suggested).session(task, load_strategy(strategy), budget, seed)
        self._given = 0

    def ask(self, count: int = 1) -> list[Candidate]:
        """Up to `count` candidates that were not given before; none while results are missing, and after the
        end of the search. Raises NoLegalCandidate."""
        if count < 1:
            raise ValueError(f"count is at least 1, not {count}")
        while self._session.asked - self._given < count and self._session.ready:
            self._session.ask()
        given = self._session.candidates[self._given : self._given + count]
        self._given += len(given)
        return list(given)

    def tell(
        self,
        number: int,
        seconds: float | None = None,
        *,
        failure: str | None = None,
        message: str = "",
    ) -> None:
        """What came of candidate `number`: `seconds` per call, or a kind of `failure`. The same may be told
        again. Raises ValueError for what is no result, for a candidate that was not given, and for one that
        was told something else."""
        if not 0 <= number < self._given:
            raise ValueError(f"candidate {number} was not asked for; {self._given} were")
        if failure is not None and failure not in FAILURE_KINDS:
            raise ValueError(f"failure is one of {', '.join(FAILURE_KINDS)}, not {failure!r}")
        outcome = Outcome(seconds=seconds, failure=failure, message=message)
        known = self._session.outcome(number)
        if known is None:
            self._session.tell(number, outcome)
        elif known != outcome:
            raise ValueError(f"candidate {number} was told something else: {known.seconds or known.failure}")

    def trace(self, candidate: Candidate) -> Trace:
        """The schedule of a candidate, to be applied, or printed as Python."""
        return Trace.from_json(json.loads(candidate.trace))

    @property
    def best(self) -> Trial | None:
        """The fastest so far, with its candidate and outcome."""
        return self._session.best

    @property
    def finished(self) -> bool:
        """Whether all that the budget allows was asked and told, or the search has had enough."""
        return self._session.finished

    @property
    def conclusion(self) -> tuple[EndState, str]:
        """How the search ends, as it stands now, and why."""
        return self._session.conclusion
