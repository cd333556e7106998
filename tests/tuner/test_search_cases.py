"""What every strategy must get right: spaces with nothing legal, tiny spaces, odd times, and failures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from synthetic import FakeSpace, run, session, space, tiles, timed

from tilewright.measure.messages import Failure, MeasureInput, MeasureResult
from tilewright.tuner.candidate import Candidate
from tilewright.tuner.errors import NoLegalCandidate
from tilewright.tuner.outcome import Outcome
from tilewright.tuner.session import TuningSession
from tilewright.tuner.share import trials_of_share
from tilewright.tuner.strategies import STRATEGIES, load_strategy
from tilewright.tuner.watchdog import in_time

EVERY = pytest.mark.parametrize("strategy", sorted(STRATEGIES))

SECONDS = 60.0
"""The longest that the searches of these tests may think: they take a fraction of it."""


def searched(
    of: FakeSpace,
    strategy: str,
    trials: int,
    outcome: Callable[[Candidate], Outcome] = timed,
) -> TuningSession:
    found = session(of, load_strategy(strategy), trials)
    with in_time("searching", SECONDS):
        run(found, outcome)
    return found


def one(candidate: Candidate) -> Outcome:
    return Outcome(seconds=1.0)


@EVERY
@pytest.mark.parametrize(
    "rules",
    [
        {"registers": lambda pop: pop[:, 0] > 0},
        {"registers": lambda pop: pop[:, 0] > 1, "cache": lambda pop: pop[:, 0] < 2},
    ],
    ids=["one constraint", "two that exclude each other"],
)
@pytest.mark.parametrize("size", [4, 300], ids=["enumerable", "too large"])
def test_a_space_that_rejects_everything_ends_with_counts_by_reason(
    strategy: str, rules: dict[str, Any], size: int
) -> None:
    of = space({"a": range(1, size), "b": range(1, size), "c": range(1, size)}, rules=rules)
    with pytest.raises(NoLegalCandidate) as refused:
        searched(of, strategy, 5)
    error = refused.value
    assert (set(error.violations), sum(error.violations.values()) >= error.tried > 0) == (set(rules), True)


@EVERY
def test_a_space_whose_points_are_all_one_schedule_ends_after_one_trial(strategy: str) -> None:
    """What a later check rejects: the points differ, and their traces do not."""
    of = space({"a": range(200)})
    sketch = of.sketches[0]
    object.__setattr__(of, "sketches", (Constant(sketch),))
    found = searched(of, strategy, 64, one)
    assert (found.told, found.state) == (1, "exhausted")


class Constant:
    """A sketch of which every configuration comes to the same schedule."""

    def __init__(self, sketch: Any) -> None:
        self.name, self.columns, self._sketch = sketch.name, sketch.columns, sketch

    def resolve(self, row: Any) -> Any:
        return self._sketch.resolve([0])


@EVERY
@pytest.mark.parametrize("points", [1, 3, 7])
def test_a_space_of_few_points_is_measured_whole_and_exhausted(strategy: str, points: int) -> None:
    found = searched(space({"a": range(points)}), strategy, 64, one)
    assert (found.told, found.conclusion) == (
        points,
        ("exhausted", f"the space has no more than {points} candidates"),
    )


@EVERY
def test_few_legal_points_among_many_are_all_found(strategy: str) -> None:
    of = space({"a": range(1, 25), "b": range(1, 25)}, rules={"a * b": lambda pop: pop[:, 0] * pop[:, 1] > 3})
    found = searched(of, strategy, 64, one)
    assert (found.told, found.state) == (5, "exhausted")


@EVERY
@pytest.mark.parametrize(("share", "trials"), [(0.005, 2), (0.5, 244), (1.0, 488), (1e-9, 1)])
def test_a_share_of_a_space_measures_that_part_of_it(strategy: str, share: float, trials: int) -> None:
    of = space({"a": range(8), "b": range(61)})
    assert trials_of_share(of, share) == trials
    assert searched(of, strategy, trials_of_share(of, share), one).told == trials


@pytest.mark.parametrize("share", [0.0, -0.5, 1.5, float("nan"), True, "half"])
def test_what_is_no_share_of_a_space_is_refused(share: Any) -> None:
    with pytest.raises(ValueError, match="a share of a space is a number above 0 and at most 1"):
        trials_of_share(space({"a": range(8)}), share)


@EVERY
def test_ten_times_the_trials_of_a_space_measure_it_once(strategy: str) -> None:
    shape = {"a": range(8), "b": range(61)}
    found = searched(space(shape), strategy, 4880, one)
    assert (found.told, found.state) == (488, "exhausted")
    assert len({candidate.key for candidate in found.candidates}) == 488


@EVERY
@pytest.mark.parametrize("reading", [0.0, float("nan"), float("inf"), -1e-9])
def test_a_time_below_the_resolution_of_the_clock_is_excluded_and_said(strategy: str, reading: float) -> None:
    found = searched(
        tiles(), strategy, 24, lambda c: Outcome.timed(reading) if c.number in (0, 5, 11) else timed(c)
    )
    assert (found.told, found.failures) == (24, {"run_error": 3})
    assert found.best is not None
    assert found.best.candidate.number not in (0, 5, 11)
    assert "below the resolution of the timer" in found.history[5].outcome.message


@EVERY
def test_failures_in_a_row_end_a_search_at_the_limit_whatever_the_strategy(strategy: str) -> None:
    found = searched(tiles(), strategy, 1000, lambda c: Outcome(failure="run_error"))
    assert (found.told, found.conclusion) == (200, ("failed", "200 trials in a row failed (run_error: 200)"))


def test_of_a_batch_with_failed_builds_and_a_crash_each_costs_one_trial() -> None:
    kinds = {1: "build_error", 4: "build_error", 7: "build_error", 3: "run_error"}

    def outcome(candidate: Candidate) -> Outcome:
        kind = kinds.get(candidate.number)
        if kind is None:
            return timed(candidate)
        item = MeasureInput(f"trial-{candidate.number}", 1, {}, {}, {}, 0)
        return Outcome.of(MeasureResult.failed(item, Failure(kind, f"{kind} on purpose")))

    found = searched(tiles(), "guided", 10, outcome)
    assert (found.told, found.failures) == (10, {"build_error": 3, "run_error": 1})
    assert [t.candidate.number for t in found.history if t.outcome.exact] == [0, 2, 5, 6, 8, 9]
