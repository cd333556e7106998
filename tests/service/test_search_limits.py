"""What a job says while it does not get on, and when its search is stopped."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from service_harness import HARDWARE, OTHER_FACTS, OTHER_HARDWARE, attach, searched, settle, stored_job
from shepherding import Children, processes, supervised, until

from tilewright.db import Store
from tilewright.db.sql import silence
from tilewright.service.overtime import is_late


def test_a_job_that_waits_for_its_turn_says_so_until_it_has_it(store: Store) -> None:
    attach(store)
    first, second = stored_job(store), stored_job(store)
    with supervised(store, Children(), max_searches=1):
        until(lambda: store.job(second.id).reason != "")
        waiting = store.job(second.id)
        store.cancel_job(first.id)
        until(lambda: store.job(second.id).state == "running")
    assert (waiting.state, waiting.reason, store.job(second.id).reason) == (
        "queued",
        "waits for one of the 1 searches that run at a time to end",
        "",
    )


def test_a_search_that_outlives_its_seconds_is_stopped_and_what_it_found_is_kept(store: Store) -> None:
    worker = attach(store)
    job = searched(store, 2, seconds=0.1)
    settle(store, [1e-5], worker)
    with supervised(store, Children(), slack=0.3):
        until(lambda: store.job(job.id).state != "running")
        until(lambda: not processes())
    assert (store.job(job.id).state, store.job(job.id).reason) == (
        "completed",
        "the 0.1 s of the budget are used up; its search did not end within 0.3 s more and was stopped; what "
        "it found is kept",
    )


def test_a_search_is_not_late_for_the_time_that_its_job_was_paused(store: Store) -> None:
    worker = attach(store)
    job = searched(store, 2, seconds=1.0)
    settle(store, [1e-5], worker)
    store.pause_job(job.id)
    time.sleep(1.2)
    resumed = store.resume_job(job.id)
    assert not is_late(resumed, age=10.0, slack=0.1, store=store)
    assert is_late(replace(resumed, paused_seconds=0.0), age=10.0, slack=0.1, store=store)


def test_a_search_that_proposes_nothing_within_its_seconds_is_stopped(store: Store) -> None:
    attach(store)
    job = stored_job(store, seconds=0.1)
    with supervised(store, Children(), slack=0.3):
        until(lambda: store.job(job.id).state == "failed")
    assert store.job(job.id).reason == (
        "the 0.1 s of the budget are used up; its search did not end within 0.3 s more and was stopped; "
        "nothing was found"
    )


def test_a_search_whose_trials_nobody_has_started_yet_is_given_its_time(store: Store) -> None:
    attach(store)
    job = searched(store, 2, seconds=0.1)
    with supervised(store, Children(), slack=0.1):
        time.sleep(0.6)
        assert store.job(job.id).state == "running"


def test_the_reason_of_a_job_that_waits_names_the_worker_whose_lease_expired(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(silence, "TOUCH_SECONDS", 0.01)
    worker = attach(store)
    job = searched(store, 1)
    store.claim(worker.id, worker.session, worker.hardware, 1, 0.05)
    with supervised(store, Children()):
        until(lambda: store.job(job.id).state == "waiting")
        assert store.job(job.id).reason.startswith(
            f"no worker for hardware {HARDWARE} (w1 is offline: its lease lease_"
        )


def test_workers_beyond_those_that_a_reason_names_come_and_go_without_an_event(store: Store) -> None:
    for number in range(4):
        attach(store, f"w{number}", OTHER_FACTS)
    job = stored_job(store)
    reason = f"no worker for hardware {HARDWARE}; attached are {OTHER_HARDWARE} (w0, w1, w2 and 1 more)"
    with supervised(store, Children()):
        until(lambda: store.job(job.id).reason == reason)
        before = store.events(job.id)
        for _ in range(5):
            late = attach(store, "w9", OTHER_FACTS)
            time.sleep(0.1)
            store.leave(late.id, late.session)
            time.sleep(0.1)
        assert (store.events(job.id), store.job(job.id).reason) == (before, reason)
        first = next(worker for worker in store.workers() if worker.name == "w0")
        store.leave(first.id, first.session)
        until(lambda: "(w1, w2, w3)" in store.job(job.id).reason)
        assert len(store.events(job.id)) == len(before) + 1


def test_the_reason_of_a_job_that_waits_follows_what_it_waits_for(store: Store) -> None:
    job = stored_job(store)
    with supervised(store, Children()):
        until(lambda: store.job(job.id).reason.endswith("no worker is attached"))
        attach(store, "w2", OTHER_FACTS)
        until(lambda: "no worker is attached" not in store.job(job.id).reason)
    assert store.job(job.id).reason == (
        f"no worker for hardware {HARDWARE}; attached are {OTHER_HARDWARE} (w2)"
    )
