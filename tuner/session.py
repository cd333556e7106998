"""A search as ask and tell, with no clock, no store and no measuring in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Literal

import numpy as np

from ..db.words import DEFAULT_BATCH
from .budget import EXACT, Budget
from .candidate import Candidate
from .errors import NotReady
from .estimate import Estimated
from .giving_up import MAX_FAILURES, FailureCount
from .goals import Goals
from .model_quality import quality_of
from .outcome import Outcome, Trial
from .prior import Prior
from .proposals import Proposals
from .space import TuningSpace
from .strategies import SearchStrategy
from .task import Replayed
from .time_split import Stopwatch

__all__ = ["BATCH", "MAX_FAILURES", "BestFound", "SessionState", "TuningSession", "require_seed"]

BATCH = DEFAULT_BATCH
"""Trials of one batch. Two batches are out at a time: one is measured while the next is thought of."""

EARLY = 32
"""The first so many trials go in batches of half the size: the first results teach the most, and the sooner
they are used the better (a tenth nearer to the best at 32 trials, on matmul's spaces by estimated cycles)."""

SessionState = Literal["running", "completed", "exhausted", "failed"]
EndState = Literal["completed", "exhausted", "failed"]


@dataclass(frozen=True, slots=True)
class BestFound:
    """A trial that was faster than all told before it."""

    number: int
    seconds: float
    sketch: str


def require_seed(seed: int) -> None:
    """Raises ValueError for what is no seed."""
    if isinstance(seed, bool) or not isinstance(seed, int) or not -EXACT < seed < EXACT:
        raise ValueError(f"a seed is an integer of less than 2**53, not {seed!r}")


class TuningSession:
    """The search of one space within a budget: so many trials, fewer where it asks for a target or has a
    patience. Its seconds are for whoever has a clock, who then calls `close`.

    A batch depends on the results of the batches up to two before it, in trial order, and on nothing else:
    its random stream is a function of (seed, batch). So the order and the time in which results arrive change
    nothing, and a session that is asked and told the same again proposes the same again. No candidate key is
    proposed twice; a point that is illegal or known costs no trial.

    `target` and `codegen` are the target's key and the code generator's version, for candidate keys.
    `defaults` are sketch names and rows that rules would choose, for the strategy to begin with, and `costs`
    is what those rules say of any row of features, for its cost model;
    `suggestions` are sketch names, rows and origins (`suggested`: by a user; `transferred`: fast for a
    related workload), and `outside` schedules that users suggest and that are no points of the space; what
    users suggest is proposed ahead of all others, what is transferred takes a quarter of each batch at most.
    `known` are trials of this space that earlier searches measured, with numbers below 0: they count as done,
    may be the best, and are not proposed again. `adopted` are candidates of an earlier run of
    this search, numbered 0, 1, …: they count as asked, are to be told like others, and are not proposed
    again.

    Raises SchemaMismatch for a `prior` whose features are not of `feature_schema` (where both are known).

    One thread may ask while another tells: they share no state that the other changes.
    """

    def __init__(
        self,
        space: TuningSpace,
        strategy: SearchStrategy,
        budget: Budget | int,
        *,
        target: str,
        codegen: str,
        seed: int = 0,
        batch_size: int = BATCH,
        max_failures: int = MAX_FAILURES,
        defaults: Sequence[tuple[str, tuple[int, ...]]] = (),
        adopted: Sequence[Candidate] = (),
        suggestions: Sequence[tuple[str, tuple[int, ...], str]] = (),
        outside: Sequence[Replayed] = (),
        known: Sequence[Trial] = (),
        prior: Prior | None = None,
        costs: Estimated | None = None,
        feature_schema: int | None = None,
        watch: Stopwatch | None = None,
    ) -> None:
        if batch_size < 1 or max_failures < 1:
            raise ValueError("batch_size and max_failures are at least 1")
        require_seed(seed)
        if prior is not None:
            prior.require(feature_schema)
        self.budget = budget if isinstance(budget, Budget) else Budget(budget)
        self._seed = seed
        self._batch_size = batch_size
        self._failed = FailureCount(max_failures)
        self._watch = watch or Stopwatch()
        self._proposals = Proposals(
            space,
            strategy,
            target=target,
            codegen=codegen,
            defaults=defaults,
            suggestions=suggestions,
            outside=outside,
            prior=prior,
            costs=costs,
            watch=self._watch,
        )
        self._candidates: list[Candidate] = []
        self._outcomes: dict[int, Outcome] = {}
        self._failures: Counter[str] = Counter()
        self._events: list[BestFound] = []
        self._best: Trial | None = None
        self._next_batch = 0
        self._in_order = 0
        self._told_to = 0  # all before it were told
        self._closed: tuple[EndState, str] | None = None
        self._enough = False
        self._known = tuple(known)
        self.best_known: Trial | None = None
        self._take_known()
        self._goals = Goals(self.budget, self._known_seconds)
        self._adopt(adopted)

    @property
    def trials(self) -> int:
        """The most trials of the budget that are to be measured: those that are known are done."""
        return max(0, self.budget.trials - len(self._known))

    @property
    def known(self) -> tuple[Trial, ...]:
        """What earlier searches measured."""
        return self._known

    @property
    def asked(self) -> int:
        """How many candidates were proposed (or adopted); the next one gets this number."""
        return len(self._candidates)

    @property
    def told(self) -> int:
        return len(self._outcomes)

    @property
    def outstanding(self) -> tuple[Candidate, ...]:
        """Candidates whose outcome was not told yet, in trial order."""
        left = islice(self._candidates, self._told_to, None)
        return tuple(c for c in left if c.number not in self._outcomes)

    @property
    def best(self) -> Trial | None:
        """The fastest trial with a time of its own (the earliest of equals)."""
        return self._best

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """All that was proposed or adopted, in trial order."""
        return tuple(self._candidates)

    @property
    def history(self) -> tuple[Trial, ...]:
        """All that was told, in trial order."""
        return self._told_up_to(self._next_batch)

    @property
    def events(self) -> tuple[BestFound, ...]:
        """Each improvement, in the order of telling."""
        return tuple(self._events)

    @property
    def failures(self) -> dict[str, int]:
        """How many trials failed, by kind, most frequent first."""
        return dict(self._failures.most_common())

    @property
    def closed(self) -> bool:
        """Whether nothing more will be proposed."""
        return self._closed is not None or self.asked >= self.trials

    @property
    def finished(self) -> bool:
        """Whether the search is over: nothing more to propose, and nothing more worth waiting for."""
        return self.state != "running"

    @property
    def state(self) -> SessionState:
        """`running`, or the job state that the search has ended in."""
        state, _ = self._closed or ("completed", "")
        if self._enough:
            return state
        return state if self.closed and self.told == self.asked else "running"

    @property
    def conclusion(self) -> tuple[EndState, str]:
        """The job state and the reason of a search that ends as it stands now."""
        state, reason = self._closed or ("completed", self._all_done())
        if state == "failed":
            return state, reason
        if self._best is not None:
            return state, reason + self._excluded() + self._misled()
        if not self.told:
            return "failed", f"no trial gave a time: {reason}"
        kinds = ", ".join(f"{kind}: {count}" for kind, count in self.failures.items())
        told = f"none of {self.told} trials gave a time ({kinds or 'no failure'}); {reason}"
        return "failed", self._failed.workload or (told + self._failed.example)

    def _all_done(self) -> str:
        count, known = self.budget.trials, len(self._known)
        if known >= count:
            return f"all {count} trials of the budget were measured before"
        before = f", {known} of them by earlier searches" if known else ""
        return f"all {count} trials of the budget are done{before}"

    def _excluded(self) -> str:
        """What became of candidates whose results were wrong: people must know that the winner is none."""
        wrong = [o.message for _, o in sorted(self._outcomes.items()) if o.failure == "wrong_output"]
        if not wrong:
            return ""
        count = f"{len(wrong)} candidate" + ("s" if len(wrong) > 1 else "")
        first = wrong[0].split("\n", 1)[0]
        return f"; {count} excluded for wrong results ({first}); the results of the winner were verified"

    def _misled(self) -> str:
        """What people must know of the cost model."""
        warning = quality_of(self.history).warning
        return f"; {warning}" if warning else ""

    @property
    def ready(self) -> bool:
        """Whether the next batch can be asked for: not closed, and all that it depends on was told."""
        return not self.closed and not self._missing()

    def ask(self) -> list[Candidate]:
        """The next batch; empty once the search is closed.

        Raises NotReady where results of the batches it depends on are missing, and NoLegalCandidate where the
        space has no legal point at all.
        """
        with self._watch.part("propose"):
            return self._ask()

    def _ask(self) -> list[Candidate]:
        if self.closed:
            return []
        missing = self._missing()
        if missing:
            raise NotReady(self._next_batch, missing)
        batch, size = self._next_batch, self._size_of_batch()
        count = min(size, self.trials - self.asked)
        rng = np.random.default_rng([self._seed % (1 << 64), batch])
        history = self._known + self._told_up_to(batch - 2)
        chosen = self._proposals.next(batch, size, count, history, self.asked, rng)
        if not chosen and not self._candidates:
            raise self._proposals.nothing_legal(rng)
        if len(chosen) < count:
            total = len(self._candidates) + len(chosen)
            self._closed = self._closed or ("exhausted", self._proposals.exhausted(total))
        self._candidates.extend(chosen)
        self._next_batch += 1
        return chosen

    def tell(self, number: int, outcome: Outcome) -> None:
        """What came of trial `number`: in any order, once."""
        if not 0 <= number < len(self._candidates):
            raise ValueError(f"trial {number} was not asked for")
        if number in self._outcomes:
            raise ValueError(f"trial {number} was told already")
        self._outcomes[number] = outcome
        while self._told_to in self._outcomes:
            self._told_to += 1
        if outcome.failure is not None:
            self._failures[outcome.failure] += 1
        if outcome.exact:
            self._consider(Trial(self._candidates[number], outcome))
        self._judge_in_order()

    def told_batch(self, first: int) -> tuple[Trial, ...]:
        """The trials of the batch that begins with trial `first`; none while one of them is not told."""
        rest = islice(self._candidates, first, None)
        batch = [c for _, group in islice(groupby(rest, lambda c: c.batch), 1) for c in group]
        if any(c.number not in self._outcomes for c in batch):
            return ()
        return tuple(Trial(c, self._outcomes[c.number]) for c in batch)

    def outcome(self, number: int) -> Outcome | None:
        """What was told of trial `number`; None while nothing was."""
        return self._outcomes.get(number)

    def close(self, reason: str) -> None:
        """Propose nothing more, as when the time is used up; what is out may still be told."""
        if self._closed is None:
            self._closed = ("completed", reason)

    def _take_known(self) -> None:
        if any(trial.candidate.number >= 0 for trial in self._known):
            raise ValueError("known trials are those of other searches, with numbers below 0")
        for trial in self._known:
            self._proposals.take(trial.candidate)
            if trial.outcome.exact and self._is_faster(trial):
                self._best = self.best_known = trial
        best, target = self._known_seconds, self.budget.target_seconds
        if best is not None and target is not None and best <= target:
            self._closed = ("completed", f"the target of {target:.4g} s was reached before: {best:.4g} s")

    @property
    def _known_seconds(self) -> float | None:
        return self.best_known.outcome.seconds if self.best_known is not None else None

    def _adopt(self, candidates: Sequence[Candidate]) -> None:
        if [candidate.number for candidate in candidates] != list(range(len(candidates))):
            raise ValueError("adopted candidates are numbered 0, 1, … in this order")
        for candidate in candidates:
            self._candidates.append(candidate)
            self._proposals.take(candidate)
            self._next_batch = max(self._next_batch, candidate.batch + 1)

    def _size_of_batch(self) -> int:
        return max(1, self._batch_size // 2) if self.asked < EARLY else self._batch_size

    def _missing(self) -> tuple[int, ...]:
        left = islice(self._candidates, self._told_to, None)
        needed = (c.number for c in left if c.batch <= self._next_batch - 2)
        return tuple(number for number in needed if number not in self._outcomes)

    def _told_up_to(self, batch: int) -> tuple[Trial, ...]:
        return tuple(
            Trial(c, self._outcomes[c.number])
            for c in self._candidates
            if c.batch <= batch and c.number in self._outcomes
        )

    def _consider(self, trial: Trial) -> None:
        if self._is_faster(trial):
            self._best = trial
            seconds = trial.outcome.seconds or 0.0
            self._events.append(BestFound(trial.candidate.number, seconds, trial.candidate.sketch))

    def _is_faster(self, trial: Trial) -> bool:
        rank = (trial.outcome.seconds or 0.0, trial.candidate.number)
        best = self._best
        return best is None or rank < (best.outcome.seconds or 0.0, best.candidate.number)

    def _judge_in_order(self) -> None:
        while self._in_order in self._outcomes and not self._enough:
            number, outcome = self._in_order, self._outcomes[self._in_order]
            self._failed.count(outcome)
            self._in_order += 1
            enough = self._goals.verdict(number, outcome)
            if (reason := self._failed.verdict(self.failures)) is not None:
                self._closed, self._enough = ("failed", reason), True
            elif enough is not None:
                self._closed, self._enough = ("completed", enough), True
