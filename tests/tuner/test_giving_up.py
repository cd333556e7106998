"""Searches that end before their budget is used: what is hopeless is not tried to the end."""

from __future__ import annotations

import json
import signal
import threading
import time
from typing import Any

import pytest
from lab import Lab, failure
from synthetic import FakeMachine, task, tiles

from tilewright.compiler.target import Hardware
from tilewright.db import Store
from tilewright.db.records import Job
from tilewright.tuner.errors import TookTooLong
from tilewright.tuner.giving_up import FailureCount
from tilewright.tuner.outcome import Outcome
from tilewright.tuner.run import run_search
from tilewright.tuner.session import TuningSession
from tilewright.tuner.task import TuningTask
from tilewright.tuner.tune import Tuner
from tilewright.tuner.watchdog import in_time

TOO_LARGE = "no candidate can be measured: the reference needs 30 GiB, and the limit is 2 GiB"
LACKS = "code for znver4 cannot run on this machine, which lacks avx512f"
OF_WORKLOAD = '{"of_workload": true}'


@pytest.fixture
def lab(store: Store) -> Lab:
    return Lab(store, at_once=1)


def ended(job: Job) -> tuple[str, str, int]:
    return job.state, job.reason, job.done


def test_a_workload_that_nothing_can_be_measured_of_costs_two_trials(lab: Lab) -> None:
    lab.settle = lambda item: failure(item, "build_error", TOO_LARGE, OF_WORKLOAD)
    assert ended(lab.search(lab.job(trials=300))) == (
        "failed",
        f"{TOO_LARGE} (build_error, each of the first 2 trials)",
        2,
    )


def test_workers_of_different_limits_agree_that_a_workload_cannot_be_measured(lab: Lab) -> None:
    lab.settle = lambda item: failure(item, "build_error", f"{TOO_LARGE} {item.number}", OF_WORKLOAD)
    assert ended(lab.search(lab.job(trials=300)))[0::2] == ("failed", 2)


def test_a_budget_of_one_trial_names_what_the_workload_failed_of(lab: Lab) -> None:
    lab.settle = lambda item: failure(item, "run_timeout", "it takes too long", OF_WORKLOAD)
    assert ended(lab.search(lab.job(trials=1))) == (
        "failed",
        "it takes too long (run_timeout, the only trial)",
        1,
    )


def test_a_workload_that_could_be_measured_elsewhere_goes_on(lab: Lab) -> None:
    lab.settle = lambda item: (
        failure(item, "build_error", TOO_LARGE, OF_WORKLOAD) if item.number > 0 else None
    )
    assert ended(lab.search(lab.job(trials=20)))[0::2] == ("completed", 20)


def test_a_target_that_the_hardware_cannot_run_costs_sixteen_trials(lab: Lab) -> None:
    lab.settle = lambda item: failure(item, "build_error", LACKS)
    assert ended(lab.search(lab.job(trials=300))) == (
        "failed",
        f"the first 16 trials all failed to build for one reason: {LACKS}",
        16,
    )


@pytest.mark.parametrize("kind", ["run_error", "worker_lost", "constraint"])
def test_other_failures_alike_are_borne_200_times(kind: str) -> None:
    count = FailureCount()
    for _ in range(199):
        count.count(Outcome(failure=kind, message="the same"))
    before = count.verdict({kind: 199})
    count.count(Outcome(failure=kind, message="the same"))
    assert (before, count.verdict({kind: 200})) == (None, f"200 trials in a row failed ({kind}: 200)")


def test_builds_that_fail_for_several_reasons_are_borne_200_times() -> None:
    count = FailureCount()
    for n in range(199):
        count.count(Outcome(failure="build_error", message=f"reason {n % 2}"))
    assert count.verdict({"build_error": 199}) is None


def test_cancelled_trials_count_neither_way() -> None:
    count = FailureCount()
    for kind in ["cancelled"] * 20 + ["build_error"] * 15:
        count.count(Outcome(failure=kind, message=kind))
    before = count.verdict({})
    count.count(Outcome(failure="cancelled"))
    count.count(Outcome(failure="build_error", message="build_error"))
    assert (before, count.verdict({})) == (
        None,
        "the first 16 trials all failed to build for one reason: build_error",
    )


def test_tuning_here_ends_after_two_failures_of_the_workload_and_records_what_they_were(store: Store) -> None:
    machine = FakeMachine(fails=lambda n: "build_error", of_workload=True)
    tuner = Tuner(task=task(tiles()), hardware=Hardware.of({"architecture": "test"}), trials=24, store=store)
    record = tuner.run(machine)
    detail = json.loads(store.trials(record.job or "")[1].failure_detail)
    assert (record.state, record.reason, len(machine.items), detail["of_workload"]) == (
        "failed",
        "build_error on purpose (build_error, each of the first 2 trials)",
        2,
        True,
    )


def test_seconds_used_up_before_a_trial_ended_are_told_as_that(lab: Lab) -> None:
    def start_and_stay(nap: int) -> None:
        lab.clock.now += 10
        if nap == 1:
            lease = lab.store.claim(lab.worker, "s", job.hardware or "", 1, 1e6)
            assert lease is not None
            lab.store.start(lease.id, lease.items[0].trial, lease.items[0].attempt)

    job, lab.during, lab.at_once = lab.job(seconds=8), start_and_stay, 1
    lab.work = lambda: None  # type: ignore[method-assign]
    assert ended(lab.search(job)) == (
        "failed",
        "no trial gave a time: the 8 s of the budget are used up before a trial ended; the first was still "
        "being measured, which begins with the reference of the workload",
        0,
    )


def test_seconds_used_up_before_a_trial_was_measured_here_are_told_as_that() -> None:
    times = iter([0.0, 0.0])
    tuner = Tuner(
        task=task(tiles()),
        hardware=Hardware.of({"architecture": "test"}),
        seconds=5.0,
        clock=lambda: next(times, 9.0),
    )
    assert tuner.run(FakeMachine()).reason == (
        "no trial gave a time: the 5 s of the budget are used up before a trial was measured"
    )


def test_a_space_that_takes_longer_to_make_than_the_budget_ends_the_job(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spin(job: Job, store: Store) -> TuningTask:
        while True:
            time.sleep(0.01)

    monkeypatch.setattr("tilewright.tuner.run._GRACE_SECONDS", 0.0)
    job = lab.job(seconds=0.2)
    epoch = lab.store.begin_search(job.id)
    assert ended(run_search(job, lab.store, epoch, open_task=spin)) == (
        "failed",
        "the 0.2 s of the budget are used up while making the search space",
        0,
    )


def test_a_space_of_a_job_without_seconds_is_given_up_too(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def spin(job: Job, store: Store) -> TuningTask:
        while True:
            time.sleep(0.01)

    monkeypatch.setattr("tilewright.tuner.watchdog.THINKING_SECONDS", 0.2)
    job = lab.job()
    epoch = lab.store.begin_search(job.id)
    assert ended(run_search(job, lab.store, epoch, open_task=spin))[:2] == (
        "failed",
        "making the search space took longer than the 0.2 s that a search may think at one go",
    )


def test_proposals_that_take_longer_than_the_budget_end_the_job_with_its_best(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = TuningSession.ask

    def spin_later(session: TuningSession) -> Any:
        while session.told:
            time.sleep(0.01)
        return ask(session)

    monkeypatch.setattr(TuningSession, "ask", spin_later)
    assert ended(lab.search(lab.job(seconds=1.0)))[:2] == (
        "completed",
        "the 1 s of the budget are used up while proposing the next trials",
    )


def test_a_watchdog_gives_back_the_alarm_it_borrowed() -> None:
    handler, timer = signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)
    with in_time("testing", 50.0):
        pass
    left = signal.getitimer(signal.ITIMER_REAL)
    assert signal.getsignal(signal.SIGALRM) is handler
    assert left[0] == pytest.approx(timer[0], abs=1.0)


def test_a_watchdog_rings_again_where_it_was_not_heard() -> None:
    def deaf() -> None:
        try:
            time.sleep(5.0)
        except TookTooLong:
            time.sleep(5.0)

    with pytest.raises(TookTooLong), in_time("testing", 0.1):
        deaf()


def test_a_watchdog_outside_of_the_main_thread_lets_things_be() -> None:
    done: list[bool] = []

    def work() -> None:
        with in_time("testing", 0.01):
            time.sleep(0.05)
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]
