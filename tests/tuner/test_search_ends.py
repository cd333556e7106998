"""How a search of the service ends, and what it tells on the way."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from lab import Killed, Lab, ended, failure
from synthetic import HARDWARE, TARGET, WORKLOAD, FakeSpace, space, tile_seconds

from tilewright.compiler.ir import VerifyError
from tilewright.db import Store
from tilewright.db.best_records import Baseline
from tilewright.db.fleet_records import LeaseItem
from tilewright.db.records import Job, Settlement
from tilewright.tuner.run import run_search


@pytest.mark.parametrize("points", [1, 3, 7])
def test_a_small_space_ends_the_job_as_exhausted(lab: Lab, points: int) -> None:
    lab.space, lab.seconds = space({"a": range(points)}), lambda trace: 1.0 + trace["steps"]["a"]
    job = lab.search(lab.job(trials=64))
    assert (*ended(job), job.done) == (
        "exhausted",
        f"the space has no more than {points} candidates",
        points,
    )


def test_a_job_without_a_legal_candidate_fails_naming_the_constraint(lab: Lab) -> None:
    lab.space = space({"a": (1, 2)}, rules={"registers": lambda pop: pop[:, 0] > 0})
    assert ended(lab.search(lab.job())) == (
        "failed",
        "no legal candidate: none of 2 configurations tried of 1 sketch (s0) satisfies every constraint "
        "(violations: registers: 2)",
    )


def test_a_job_whose_structures_were_all_refused_fails_with_the_reasons(lab: Lab) -> None:
    lab.space = FakeSpace((), refused={"tiled": "split: no loop"})
    assert ended(lab.search(lab.job())) == (
        "failed",
        "no legal candidate: no sketch fits this workload and target (tiled: split: no loop)",
    )


def test_a_job_of_an_unknown_strategy_fails_and_lists_the_known(lab: Lab) -> None:
    assert ended(lab.search(lab.job(strategy="luck"))) == (
        "failed",
        "unknown search strategy 'luck'; known: annealing, evolutionary, grid, guided, local, random",
    )


def test_a_program_that_this_version_does_not_read_fails_the_job(lab: Lab) -> None:
    def refuse(job: Job, store: Store) -> Any:
        raise VerifyError("no such node", "/body")

    job = lab.job()
    epoch = lab.store.begin_search(job.id)
    assert ended(run_search(job, lab.store, epoch, open_task=refuse)) == (
        "failed",
        "no such node (at /body)",
    )


def test_failing_trials_each_cost_one_and_are_counted_by_kind(lab: Lab) -> None:
    lab.settle = lambda item: failure(item, "build_error") if item.number % 4 == 0 else None
    job = lab.search(lab.job(trials=32))
    assert (job.state, job.done, lab.events(job, "progress")[-1]["failures"]) == (
        "completed",
        32,
        {"build_error": 8},
    )


def test_a_job_whose_trials_all_fail_is_failed_and_the_next_one_runs(lab: Lab) -> None:
    lab.settle = lambda item: failure(item, "run_error")
    job = lab.search(lab.job(trials=300))
    assert (*ended(job), job.done) == ("failed", "200 trials in a row failed (run_error: 200)", 200)
    lab.settle = lambda item: None
    assert lab.search(lab.job(trials=8)).state == "completed"


def test_a_cancelled_job_ends_its_search_and_keeps_the_best(lab: Lab) -> None:
    def cancel(nap: int) -> None:
        if nap == 3:
            lab.store.cancel_job(job.id)
            lab.clock.now += 1

    job, lab.during = lab.job(), cancel
    state = lab.search(job).state
    best = lab.store.best(WORKLOAD, TARGET, HARDWARE)
    assert best is not None
    assert (state, best.search.state, best.search.done, best.search.asked) == (
        "cancelled",
        "cancelled",
        16,
        48,
    )


def test_a_search_that_was_begun_anew_elsewhere_stops_without_a_word(lab: Lab) -> None:
    def take_over(nap: int) -> None:
        if nap == 2:
            lab.store.begin_search(job.id)

    job, lab.during = lab.job(), take_over
    assert lab.search(job).state == "running"


def test_a_paused_job_proposes_nothing_until_it_runs_again(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    job, read = lab.job(trials=32), lab.store.job
    states = iter(["paused"] * 4)
    counts: list[int] = []

    def job_of(self: Store, job_id: str) -> Job:
        counts.append(len(lab.store.trials(job_id)))
        return changed(read(job_id), state=next(states, "running"))

    def tick(nap: int) -> None:
        lab.clock.now += 1

    lab.during = tick
    epoch = lab.store.begin_search(job.id)
    with monkeypatch.context() as patched:
        patched.setattr(type(lab.store), "job", job_of)
        run_search(job, lab.store, epoch, open_task=lab.task, clock=lab.clock, sleep=lab.nap)
    assert (counts[:4], lab.store.job(job.id).state) == ([8, 8, 8, 8], "completed")


def changed(job: Job, **values: Any) -> Job:
    return replace(job, **values)


def test_a_job_ends_when_its_seconds_are_used_up(lab: Lab) -> None:
    def tick(nap: int) -> None:
        lab.clock.now += 1 if nap < 4 else 10

    lab.during = tick
    job = lab.search(lab.job(trials=500, seconds=8))
    assert (*ended(job), job.done < 500) == ("completed", "the 8 s of the budget are used up", True)


def test_the_time_that_a_job_was_paused_does_not_count(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    job, read = lab.job(trials=32, seconds=50), lab.store.job

    def tick(nap: int) -> None:
        lab.clock.now += 100 if nap == 4 else 0.3

    def job_of(self: Store, job_id: str) -> Job:
        return changed(read(job_id), paused_seconds=100.0 if lab.naps >= 4 else 0.0)

    lab.during = tick
    with monkeypatch.context() as patched:
        patched.setattr(type(lab.store), "job", job_of)
        ended_as = ended(lab.search(job))
    assert ended_as == ("completed", "all 32 trials of the budget are done")


def test_the_time_of_a_job_begins_with_its_first_measurement(lab: Lab) -> None:
    def tick(nap: int) -> None:
        lab.clock.now += 100 if nap == 1 else 0

    lab.during = tick
    assert ended(lab.search(lab.job(trials=16, seconds=50))) == (
        "completed",
        "all 16 trials of the budget are done",
    )


def test_each_improvement_is_an_event(lab: Lab) -> None:
    job = lab.search(lab.job(strategy="random"))
    times = [tile_seconds(json.loads(trial.trace)) for trial in lab.store.trials(job.id)]
    records = [n for n, seconds in enumerate(times) if seconds == min(times[: n + 1])]
    assert [(event["number"], event["seconds"], event["gflops"]) for event in lab.events(job, "best")] == [
        (n, times[n], 2e6 / times[n] / 1e9) for n in records
    ]


def test_improvements_are_told_once_though_the_search_was_restarted(lab: Lab) -> None:
    whole = lab.events(lab.search(lab.job()), "best")

    def kill(nap: int) -> None:
        if nap == 3:
            raise Killed

    job, lab.naps, lab.during = lab.job(), 0, kill
    with pytest.raises(Killed):
        lab.search(job)
    lab.during = lambda nap: None
    lab.search(job)
    assert lab.events(job, "best") == whole


def test_the_last_progress_says_all_that_was_done(lab: Lab) -> None:
    job = lab.search(lab.job(trials=24))
    last = lab.events(job, "progress")[-1]
    assert (last["done"], last["asked"], last["trials"], last["failures"], last["remaining"]) == (
        24,
        24,
        24,
        {},
        0.0,
    )


def test_progress_is_written_at_most_twice_a_second(lab: Lab) -> None:
    job = lab.search(lab.job(trials=48))
    assert len(lab.events(job, "progress")) <= 2 + lab.naps * 0.03 / 0.5


def test_a_search_says_with_which_strategy_and_model_it_goes(lab: Lab) -> None:
    import xgboost

    job = lab.search(lab.job(trials=8))
    assert lab.events(job, "search") == [
        {
            "strategy": f"evolutionary (cost model: xgboost {xgboost.__version__})",
            "sketches": ["s0", "s1"],
            "space": [
                {
                    "sketch": name,
                    "configs": 8**6,
                    "legal": 117888,
                    "exact": False,
                    "broken": {"registers": 0.5503},
                }
                for name in ("s0", "s1")
            ],
            "resumed_trials": 0,
        }
    ]


def test_a_default_schedule_that_takes_too_long_is_bounded_like_any_other_and_bounds_the_speedup(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    naive = (1, 1, 1, 1, 1, 1)
    opened = lab.task
    monkeypatch.setattr(lab, "task", lambda *job: replace(opened(*job), defaults=[("s0", naive)]))

    def settle(item: LeaseItem) -> Settlement | None:
        if json.loads(item.trace)["steps"] != {"sketch": "s0", **{f"k{n}": 1 for n in range(6)}}:
            return None
        detail = json.dumps({"limit": 2.0, "elapsed": 2.01})
        return failure(item, "run_timeout", "the run took longer than its limit of 2 s", detail)

    lab.settle = settle
    job = lab.search(lab.job(trials=20))
    best = lab.store.best(WORKLOAD, TARGET, HARDWARE)
    first = next(trial for trial in lab.store.trials(job.id) if trial.origin == "default")
    assert (first.outcome, first.failure_message) == (
        "run_timeout",
        "the run took longer than its limit of 2 s",
    )
    assert (job.state, job.done) == ("completed", 20)
    assert best is not None and best.baseline == Baseline(first.id, 2.0, bound=True)
    assert best.speedup == 2.0 / best.seconds
