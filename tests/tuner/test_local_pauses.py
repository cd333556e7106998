"""A local search that somebody pauses, cancels or takes over, and the seconds that count."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
from lab import Killed
from local_tuning import found, last_job, tune
from mortal import Mortal
from synthetic import FakeMachine

from tilewright.db import AlreadyComplete, Conflict, Store
from tilewright.db.process_identity import ProcessIdentity
from tilewright.tuner.budget import Budget
from tilewright.tuner.opening import budget_of
from tilewright.tuner.standing import enlarged

pytestmark = pytest.mark.usefixtures("impatient")


def test_a_search_that_somebody_pauses_stores_its_result_and_stops(store: Store) -> None:
    whole = found(store, tune(store))

    def pause(number: int) -> None:
        if number == 9:
            store.pause_job(last_job(store).id)

    record = tune(store, FakeMachine(before=pause))
    assert (record.state, record.reason, record.trial_count) == ("paused", "paused", 9)
    assert record.job is not None
    assert store.trial_counts(record.job)["settled"] == 10
    assert found(store, tune(store, resumes=record.job)) == whole


def test_a_search_that_somebody_cancels_gives_what_it_found(store: Store) -> None:
    def cancel(number: int) -> None:
        if number == 9:
            store.cancel_job(last_job(store).id)

    record = tune(store, FakeMachine(before=cancel))
    assert (record.state, record.reason, record.trial_count) == ("cancelled", "cancelled", 9)
    assert record.best is not None and record.seconds == record.best.outcome.seconds


def test_of_two_processes_that_tune_one_job_only_the_later_one_writes(store: Store) -> None:
    whole = found(store, tune(store))

    def take_over(number: int) -> None:
        if number == 9:
            job = last_job(store).id
            store.pause_job(job)
            tune(store, resumes=job)

    record = tune(store, FakeMachine(before=take_over))
    assert (record.state, record.trial_count) == ("completed", 9)
    trials = [(t.number, t.outcome) for t in store.trials(record.job or "")]
    assert trials == [(n, "ok") for n, *_ in whole[0]]


def test_the_seconds_of_earlier_processes_count(store: Store) -> None:
    with pytest.raises(Killed):
        tune(Mortal(store, 9))
    job = last_job(store)
    time.sleep(0.2)
    record = tune(store, resumes=job.id, trials=24, seconds=0.1)
    assert (record.state, record.reason) == ("completed", "the 0.1 s of the budget are used up")


def test_the_seconds_that_a_job_stands_still_do_not_count(store: Store) -> None:
    with pytest.raises(Killed):
        tune(Mortal(store, 9))
    job = last_job(store)
    store.pause_job(job.id)
    time.sleep(1.5)
    record = tune(store, resumes=job.id, trials=24, seconds=60.0)
    paused = store.job(job.id).paused_seconds
    assert (record.state, record.trial_count, paused >= 1.5) == ("completed", 24, True)


def test_a_complete_job_is_not_resumed(store: Store) -> None:
    record = tune(store)
    with pytest.raises(AlreadyComplete):
        tune(store, resumes=record.job)


def test_a_job_that_another_process_tunes_is_not_resumed(store: Store) -> None:
    with pytest.raises(Killed):
        tune(Mortal(store, 9))
    job = last_job(store)
    parent = ProcessIdentity.read(job.process)
    assert parent is not None
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        import psutil

        alive = ProcessIdentity(parent.machine, other.pid, psutil.Process(other.pid).create_time())
        store.pause_job(job.id)
        store.resume_local(job.id, alive.text)
        with pytest.raises(Conflict, match=f"is being tuned by process {other.pid} on .*: pause it first"):
            tune(store, resumes=job.id)
        other.kill()
    tune(store, resumes=job.id)


def test_a_larger_budget_extends_and_a_smaller_one_does_not(store: Store) -> None:
    record = tune(store, trials=8, patience=30)
    job = store.job(record.job or "")
    assert budget_of(enlarged(store, job, Budget(4, patience=20))) == Budget(8, patience=30)
    assert budget_of(enlarged(store, job, Budget(12, patience=40))) == Budget(12, patience=40)
    assert budget_of(enlarged(store, store.job(job.id), Budget(12))) == Budget(12)
