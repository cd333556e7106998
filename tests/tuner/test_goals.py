"""Searches that end before their trials are used up: at a target, or when nothing gets better."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from lab import Lab
from synthetic import FakeMachine, run, session, task, tiles

from tilewright.compiler.target import Hardware
from tilewright.db import Store
from tilewright.tuner.budget import Budget
from tilewright.tuner.outcome import Outcome
from tilewright.tuner.session import TuningSession
from tilewright.tuner.strategies.random import Random
from tilewright.tuner.tune import Tuner

HERE = Hardware.of({"architecture": "test"})
FAILED = Outcome(failure="run_error")
CANCELLED = Outcome(failure="cancelled")


def searched(
    times: Sequence[float | Outcome], shuffle: np.random.Generator | None = None, **budget: Any
) -> TuningSession:
    """A search whose trial n takes times[n], the last of them again and again."""
    of = session(tiles(), Random(), Budget(trials=64, **budget))

    def outcome(number: int) -> Outcome:
        time = times[min(number, len(times) - 1)]
        return time if isinstance(time, Outcome) else Outcome(seconds=time)

    run(of, lambda candidate: outcome(candidate.number), shuffle)
    return of


def test_a_search_ends_at_its_target_naming_the_trial() -> None:
    of = searched([5.0, 4.0, 2.5, 1.0], target_seconds=2.5)
    assert (of.told, of.conclusion) == (
        3,
        ("completed", "trial 2 reached the target: 2.5 s, at most 2.5 s"),
    )


def test_a_target_is_not_reached_by_a_bound_or_a_failure() -> None:
    of = searched([Outcome(seconds=0.1, censored=True), FAILED, 3.0, 0.5], target_seconds=1.0)
    assert (of.told, of.conclusion[1]) == (4, "trial 3 reached the target: 0.5 s, at most 1 s")


def test_a_target_that_is_never_reached_leaves_the_trials_as_the_limit() -> None:
    of = searched([5.0], target_seconds=1.0)
    assert (of.told, of.conclusion) == (64, ("completed", "all 64 trials of the budget are done"))


def test_a_search_without_progress_has_converged() -> None:
    of = searched([5.0, 4.0, 3.0, 3.0, 9.0], patience=6)
    assert (of.told, of.conclusion) == (
        9,
        ("completed", "converged: 6 trials in a row brought nothing faster than trial 2 (3 s)"),
    )


def test_each_new_best_renews_the_patience() -> None:
    of = searched([float(64 - n // 3) for n in range(64)], patience=3)
    assert (of.told, of.conclusion[1]) == (64, "all 64 trials of the budget are done")


def test_failures_use_the_patience_up_and_cancelled_trials_do_not() -> None:
    of = searched([5.0, FAILED, CANCELLED, CANCELLED, FAILED, 6.0], patience=3)
    assert (of.told, of.conclusion[1]) == (
        6,
        "converged: 3 trials in a row brought nothing faster than trial 0 (5 s)",
    )


def test_a_search_that_runs_out_of_patience_without_a_time_has_failed() -> None:
    assert searched([FAILED], patience=1).conclusion == (
        "failed",
        "none of 1 trials gave a time (run_error: 1); converged: 1 trial in a row brought no time at all",
    )


@pytest.mark.parametrize("budget", [{"target_seconds": 2.0}, {"patience": 5}])
@pytest.mark.parametrize("order", range(4))
def test_results_that_arrive_in_any_order_end_a_search_for_the_same_reason(
    budget: dict[str, Any], order: int
) -> None:
    times = [5.0, 6.0, 3.0, 4.0, 3.5, 3.2, 2.0, 7.0, 1.0]
    in_order = searched(times, **budget)
    shuffled = searched(times, np.random.default_rng(order), **budget)
    assert shuffled.conclusion == in_order.conclusion


def test_a_job_of_the_service_ends_at_its_target_and_cancels_the_rest(store: Store) -> None:
    lab = Lab(store, seconds=lambda trace: 1.0, at_once=3)
    job = lab.search(lab.job(trials=48, target_seconds=1.5))
    counts = store.trial_counts(job.id)
    assert (job.state, job.reason, counts["ok"], counts["cancelled"]) == (
        "completed",
        "trial 0 reached the target: 1 s, at most 1.5 s",
        3,
        5,
    )


def test_a_job_of_the_service_ends_when_it_has_converged(store: Store) -> None:
    lab = Lab(store, seconds=lambda trace: 1.0)
    job = lab.search(lab.job(trials=480, patience=20))
    assert (job.state, job.reason) == (
        "completed",
        "converged: 20 trials in a row brought nothing faster than trial 0 (1 s)",
    )


@pytest.mark.parametrize(
    ("budget", "measured"), [({"target_seconds": 2.0}, 1), ({"patience": 9}, 10)], ids=["target", "patience"]
)
def test_tuning_here_measures_nothing_beyond_what_it_asked_for(
    budget: dict[str, Any], measured: int, store: Store
) -> None:
    machine = FakeMachine(lambda trace: 2.0)
    tuner = Tuner(task=task(tiles()), hardware=HERE, trials=64, store=store, strategy="random", **budget)
    record = tuner.run(machine)
    assert (record.state, record.trial_count, store.job(record.job or "").reason) == (
        "completed",
        measured,
        record.reason,
    )
    assert len({item.item for item in machine.items}) == measured
