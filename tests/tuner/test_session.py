"""Ask and tell."""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import FakeSpace, run, session, space, tile_seconds, tiles, timed

from tilewright.tuner.candidate import Candidate
from tilewright.tuner.errors import NoLegalCandidate, NotReady
from tilewright.tuner.outcome import Outcome
from tilewright.tuner.session import BestFound
from tilewright.tuner.strategies import load_strategy
from tilewright.tuner.strategies.evolutionary import Evolutionary
from tilewright.tuner.strategies.random import Random

SMALL = Evolutionary(population=256, generations=2)
BOTH = pytest.mark.parametrize("strategy", [Random(), SMALL], ids=["random", "evolutionary"])


def keys(candidates: list[Candidate]) -> list[str]:
    return [candidate.key for candidate in candidates]


@BOTH
def test_the_same_seed_proposes_the_same(strategy: object) -> None:
    assert keys(run(session(tiles(), strategy, 48, seed=3))) == keys(
        run(session(tiles(), strategy, 48, seed=3))
    )


@BOTH
def test_another_seed_proposes_something_else(strategy: object) -> None:
    assert keys(run(session(tiles(), strategy, 16, seed=3))) != keys(
        run(session(tiles(), strategy, 16, seed=4))
    )


@BOTH
@pytest.mark.parametrize("order", range(3))
def test_the_order_in_which_results_arrive_changes_no_proposal(strategy: object, order: int) -> None:
    in_order, shuffled = session(tiles(), strategy, 48), session(tiles(), strategy, 48)
    run(in_order)
    run(shuffled, shuffle=np.random.default_rng(order))
    assert keys(list(shuffled.candidates)) == keys(list(in_order.candidates))


def test_a_batch_does_not_depend_on_the_results_of_the_batch_before_it() -> None:
    early, late = session(tiles(), SMALL, 64), session(tiles(), SMALL, 64)
    for one in (early, late):
        first, _ = one.ask(), one.ask()
        for candidate in first:
            one.tell(candidate.number, timed(candidate))
    for candidate in late.outstanding:
        late.tell(candidate.number, timed(candidate))
    assert keys(early.ask()) == keys(late.ask())


def test_a_batch_depends_on_the_results_two_batches_before_it() -> None:
    plain, turned = session(tiles(), SMALL, 64), session(tiles(), SMALL, 64)
    for one, sign in ((plain, 1), (turned, -1)):
        first, _ = one.ask(), one.ask()
        for candidate in first:
            one.tell(candidate.number, Outcome(seconds=tile_seconds(json.loads(candidate.trace)) ** sign))
    assert keys(plain.ask()) != keys(turned.ask())


def test_asking_before_the_results_it_depends_on_is_refused_by_number() -> None:
    asked = session(tiles(), Random(), 64, batch_size=4)
    first, _ = asked.ask(), asked.ask()
    asked.tell(first[0].number, timed(first[0]))
    with pytest.raises(NotReady) as refused:
        asked.ask()
    assert str(refused.value) == "batch 2 depends on results that were not told yet: trials 1"


def test_a_trial_that_was_not_asked_for_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^trial 0 was not asked for$"):
        session(tiles(), Random(), 8).tell(0, Outcome(seconds=1.0))


def test_a_trial_cannot_be_told_twice() -> None:
    told = session(tiles(), Random(), 8)
    told.ask()
    told.tell(0, Outcome(seconds=1.0))
    with pytest.raises(ValueError, match=r"^trial 0 was told already$"):
        told.tell(0, Outcome(seconds=1.0))


@BOTH
@settings(max_examples=15, deadline=None)
@given(
    shapes=st.lists(
        st.dictionaries(
            st.sampled_from("abcd"), st.sets(st.integers(1, 64), min_size=1, max_size=12), min_size=1
        ),
        min_size=1,
        max_size=3,
    ),
    limit=st.integers(1, 64),
    seed=st.integers(0, 2**53 - 1),
)
def test_no_candidate_is_proposed_twice_and_all_are_legal(
    strategy: object, shapes: list[dict[str, set[int]]], limit: int, seed: int
) -> None:
    of = space(*[{k: sorted(v) for k, v in shape.items()} for shape in shapes], rules=at_most(limit))
    searched = session(of, strategy, 40, seed=seed)
    try:
        run(searched, lambda candidate: Outcome(seconds=1.0 + candidate.number % 7))
    except NoLegalCandidate:
        assert all(min(shape["first"]) > limit for shape in first_knobs(of))
        return
    found = [(candidate.key, candidate.row[0] <= limit) for candidate in searched.candidates if candidate.row]
    assert (len({key for key, _ in found}), all(legal for _, legal in found)) == (len(found), True)


def at_most(limit: int) -> dict[str, object]:
    return {"first": lambda pop: pop[:, 0] > limit}


def first_knobs(of: FakeSpace) -> list[dict[str, tuple[int, ...]]]:
    return [{"first": sketch.columns.knobs[0].domain} for sketch in of.sketches]


def test_two_configurations_of_the_same_schedule_are_measured_once() -> None:
    class Twins(Random):
        pass

    of = space({"a": (1, 2, 3), "b": (1, 2)})
    sketch = of.sketches[0]
    object.__setattr__(of, "sketches", (sketch, sketch))
    searched = session(of, Twins(), 64)
    run(searched, lambda candidate: Outcome(seconds=1.0))
    assert (len(set(keys(list(searched.candidates)))), searched.told) == (6, 6)


@BOTH
@pytest.mark.parametrize("points", [1, 3, 7, 8, 16])
def test_a_small_space_is_measured_whole_and_then_exhausted(strategy: object, points: int) -> None:
    searched = session(space({"a": range(points)}), strategy, 64)
    begun = time.thread_time()
    run(searched, lambda candidate: Outcome(seconds=1.0))
    assert (searched.told, searched.state, searched.conclusion[1]) == (
        points,
        "exhausted",
        f"the space has no more than {points} candidates",
    )
    assert time.thread_time() - begun < 5


@BOTH
def test_few_legal_points_in_a_space_too_large_to_enumerate_are_found_and_exhausted(strategy: object) -> None:
    shape = {f"k{n}": range(1, 17) for n in range(5)}
    searched = session(space(shape, rules={"corner": lambda pop: (pop > 1).sum(axis=1) > 0}), strategy, 64)
    columns = searched._proposals._space.sketches[0].columns
    object.__setattr__(columns, "random", lambda n, rng: np.ones((n, 5), dtype=np.int64))
    begun = time.thread_time()
    run(searched, lambda candidate: Outcome(seconds=1.0))
    assert (searched.told, searched.state) == (1, "exhausted")
    assert time.thread_time() - begun < 5


def test_a_budget_of_exactly_the_space_is_completed() -> None:
    searched = session(space({"a": range(16)}), Random(), 16)
    run(searched, lambda candidate: Outcome(seconds=1.0))
    assert (searched.told, searched.conclusion) == (16, ("completed", "all 16 trials of the budget are done"))


@BOTH
def test_a_budget_that_is_no_multiple_of_a_batch_is_kept_exactly(strategy: object) -> None:
    searched = session(tiles(), strategy, 21)
    run(searched)
    assert (searched.asked, searched.told, searched.state) == (21, 21, "completed")


@pytest.mark.parametrize("size", [range(1, 5), range(1, 200)], ids=["enumerable", "too large"])
def test_a_space_without_a_legal_point_names_its_constraints_with_counts(size: range) -> None:
    rules = {"registers": lambda pop: pop[:, 0] > 0, "cache bytes": lambda pop: pop[:, 1] > 2}
    searched = session(space({"a": size, "b": size, "c": size}, rules=rules), Random(), 8)
    with pytest.raises(NoLegalCandidate) as refused:
        searched.ask()
    error = refused.value
    assert str(error) == (
        f"no legal candidate: none of {error.tried} configurations tried of 1 sketch (s0) satisfies every "
        f"constraint (violations: registers: {error.tried}, cache bytes: {error.violations['cache bytes']})"
    )
    assert error.violations["registers"] == error.tried


def test_a_space_without_sketches_says_why_there_are_none() -> None:
    empty = FakeSpace((), refused={"multi-level tiling": "the block has no loop"})
    with pytest.raises(NoLegalCandidate) as refused:
        session(empty, Random(), 8).ask()
    assert str(refused.value) == (
        "no legal candidate: no sketch fits this workload and target "
        "(multi-level tiling: the block has no loop)"
    )


def test_a_search_ends_when_too_many_trials_in_a_row_have_failed() -> None:
    searched = session(tiles(), Random(), 500)
    told = run(searched, lambda candidate: Outcome(failure="build_error"))
    assert (len(told), searched.conclusion) == (
        200,
        ("failed", "200 trials in a row failed (build_error: 200)"),
    )


def test_a_success_begins_the_count_of_failures_anew() -> None:
    searched = session(tiles(), Random(), 60, max_failures=10)
    run(searched, lambda c: timed(c) if c.number % 10 == 9 else Outcome(failure="run_error"))
    assert (searched.told, searched.state) == (60, "completed")


def test_cancelled_trials_are_not_counted_as_failing() -> None:
    searched = session(tiles(), Random(), 60, max_failures=10)
    run(searched, lambda c: timed(c) if c.number == 0 else Outcome(failure="cancelled"))
    assert (searched.told, searched.state) == (60, "completed")


def test_failures_are_counted_in_trial_order_whatever_order_they_arrive_in() -> None:
    searched = session(tiles(), Random(), 16, max_failures=7)
    searched.ask(), searched.ask()
    for number in (*range(1, 4), *range(5, 8), 4):
        searched.tell(number, Outcome(failure="run_error"))
    assert searched.state == "running"


def test_a_search_in_which_nothing_gave_a_time_has_failed_and_says_by_what() -> None:
    searched = session(tiles(), Random(), 4)
    run(searched, lambda c: Outcome(failure="wrong_output" if c.number else "build_timeout"))
    assert searched.conclusion == (
        "failed",
        "none of 4 trials gave a time (wrong_output: 3, build_timeout: 1); "
        "all 4 trials of the budget are done",
    )


def test_a_censored_trial_is_never_the_best() -> None:
    searched = session(tiles(), Random(), 2)
    searched.ask()
    searched.tell(0, Outcome(seconds=1.0, censored=True))
    searched.tell(1, Outcome(seconds=2.0))
    assert searched.best is not None
    assert searched.best.candidate.number == 1


@pytest.mark.parametrize("reading", [0.0, -1.0, float("nan"), float("inf")])
def test_a_time_that_no_clock_can_have_resolved_is_a_failure(reading: float) -> None:
    assert Outcome.timed(reading) == Outcome(
        failure="run_error", message=f"timed as {reading!r} s: below the resolution of the timer"
    )


@BOTH
def test_a_search_goes_on_over_times_of_zero_and_does_not_rank_them_first(strategy: object) -> None:
    searched = session(tiles(), strategy, 48)
    run(searched, lambda c: Outcome.timed(0.0) if c.number % 5 == 0 else timed(c))
    assert searched.best is not None
    assert (searched.told, searched.failures, searched.best.candidate.number % 5 != 0) == (
        48,
        {"run_error": 10},
        True,
    )


def test_each_improvement_is_an_event_with_its_number_time_and_sketch() -> None:
    searched = session(tiles(2), Random(), 4)
    batch = searched.ask()
    for number, seconds in ((2, 3.0), (0, 4.0), (1, 2.0), (3, 1.0)):
        searched.tell(number, Outcome(seconds=seconds))
    assert searched.events == tuple(
        BestFound(number, seconds, batch[number].sketch) for number, seconds in ((2, 3.0), (1, 2.0), (3, 1.0))
    )


def test_of_equal_times_the_first_trial_is_best_whatever_order_they_arrive_in() -> None:
    searched = session(tiles(), Random(), 3)
    searched.ask()
    for number in (2, 0, 1):
        searched.tell(number, Outcome(seconds=1.0))
    assert searched.best is not None
    assert searched.best.candidate.number == 0


def test_a_closed_search_proposes_nothing_and_takes_what_is_out() -> None:
    searched = session(tiles(), Random(), 64)
    first = searched.ask()
    searched.close("the time is up")
    for candidate in first:
        searched.tell(candidate.number, timed(candidate))
    assert (searched.ask(), searched.conclusion) == ([], ("completed", "the time is up"))


def test_the_first_batch_is_spread_over_all_sketches() -> None:
    batch = session(tiles(4), load_strategy("evolutionary"), 64).ask()
    assert sorted(candidate.sketch for candidate in batch) == ["s0", "s1", "s2", "s3"]


def test_adopted_candidates_are_not_proposed_again() -> None:
    of = space({"a": range(20)})
    before = session(of, Random(), 64)
    run(before, lambda c: Outcome(seconds=1.0))
    half = before.candidates[:8]
    after = session(of, Random(), 64, seed=1, adopted=half)
    for candidate in half:
        after.tell(candidate.number, Outcome(seconds=1.0))
    run(after, lambda c: Outcome(seconds=1.0))
    assert (len(set(keys(list(after.candidates)))), after.told, after.state) == (20, 20, "exhausted")


def test_of_a_space_that_has_grown_by_two_points_only_those_are_measured() -> None:
    before = session(space({"a": range(20)}), Random(), 64)
    run(before, lambda c: Outcome(seconds=1.0))
    after = session(space({"a": range(22)}), Random(), 64, adopted=before.candidates)
    for trial in before.history:
        after.tell(trial.candidate.number, trial.outcome)
    assert sorted(c.row for c in run(after, lambda c: Outcome(seconds=1.0)) if c.row) == [(20,), (21,)]


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("trials", "a budget's trials is at least 1, not 0"),
        ("batch_size", "batch_size and max_failures are at least 1"),
        ("max_failures", "batch_size and max_failures are at least 1"),
    ],
)
def test_a_session_without_room_for_a_trial_is_refused(option: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        session(tiles(), Random(), **{"trials": 8, option: 0})


@pytest.mark.parametrize("seed", [1.5, "7", None, True, 2**53, -(2**70)])
def test_a_seed_that_is_no_integer_is_refused(seed: Any) -> None:
    with pytest.raises(ValueError, match=f"^a seed is an integer of less than 2\\*\\*53, not {seed!r}$"):
        session(tiles(), Random(), 8, seed=seed)
