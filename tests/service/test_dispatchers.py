"""The contract of a Dispatcher: one suite, for children of the server and for runners on a queue."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from dispatching import DIE, SHOT, SILENCE, EmbeddedRig, QueuedRig, Rig, rig_of
from service_harness import attach, searched, settle, stored_job
from shepherding import until

from tilewright.service.search_ends import last_end

pytestmark = pytest.mark.slow
LONG = 60.0


@pytest.fixture(params=["embedded", "queued"])
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rig]:
    if request.param == "embedded":
        kind, url = EmbeddedRig, f"sqlite:///{tmp_path}/rig.db"
    else:
        kind, url = QueuedRig, request.getfixturevalue("postgres_url")
    with rig_of(kind, url, tmp_path) as made:
        yield made


@pytest.fixture
def queued(postgres_url: str, tmp_path: Path) -> Iterator[Rig]:
    with rig_of(QueuedRig, postgres_url, tmp_path) as made:
        yield made


def test_a_search_begins_once(rig: Rig) -> None:
    attach(rig.store)
    job = stored_job(rig.store)
    rig.begin()
    until(lambda: rig.alive() != [], LONG)
    time.sleep(1.5)
    assert (rig.epochs(job.id), rig.store.job(job.id).state, rig.store.job(job.id).reason) == (
        [1],
        "running",
        "",
    )


def test_a_search_that_was_killed_begins_again_under_a_new_epoch(rig: Rig) -> None:
    attach(rig.store)
    job = stored_job(rig.store)
    rig.begin()
    until(lambda: rig.alive() != [], LONG)
    os.kill(rig.alive()[0], signal.SIGKILL)
    until(lambda: rig.epochs(job.id) == [1, 2], LONG)
    end = last_end(rig.store, job.id)
    assert end is not None
    assert (end.epoch, end.status, end.deaths) == (1, -9, 1)


def test_a_search_whose_host_was_killed_goes_on_after_a_restart(rig: Rig) -> None:
    attach(rig.store)
    job = stored_job(rig.store)
    rig.begin()
    until(lambda: rig.alive() != [], LONG)
    rig.kill()
    until(lambda: rig.alive() == [])
    rig.begin()
    until(lambda: rig.epochs(job.id) == [1, 2], LONG)
    assert rig.store.job(job.id).state == "running"


def test_a_job_whose_search_ends_by_an_error_twice_fails_with_its_last_words(rig: Rig) -> None:
    rig.script = DIE
    attach(rig.store)
    job = stored_job(rig.store)
    rig.begin()
    until(lambda: rig.store.job(job.id).state == "failed", LONG)
    assert (rig.store.job(job.id).reason, rig.epochs(job.id)) == (
        "its search ended with status 1, 2 times: out of ideas",
        [1, 2],
    )


def test_a_job_whose_search_is_killed_again_and_again_fails(rig: Rig) -> None:
    rig.script, rig.restarts = SHOT, 2
    attach(rig.store)
    job = stored_job(rig.store)
    rig.begin()
    until(lambda: rig.store.job(job.id).state == "failed", LONG)
    assert (rig.store.job(job.id).reason, rig.epochs(job.id)) == (
        "its search ended by signal 9, 3 times: it wrote nothing to stderr",
        [1, 2, 3],
    )


def test_a_failed_job_that_is_resumed_may_die_as_often_again(rig: Rig) -> None:
    rig.script = DIE
    attach(rig.store)
    job = stored_job(rig.store)
    rig.begin()
    until(lambda: rig.store.job(job.id).state == "failed", LONG)
    rig.store.resume_job(job.id)
    until(lambda: rig.store.job(job.id).state == "failed", LONG)
    assert rig.epochs(job.id) == [1, 2, 3, 4]


def test_a_result_in_between_forgives_the_deaths_before(rig: Rig) -> None:
    rig.restarts = 1
    worker = attach(rig.store)
    job = searched(rig.store, 4)
    rig.begin()
    for epoch in (2, 3, 4):
        until(lambda epoch=epoch: rig.epochs(job.id)[-1:] == [epoch] and bool(rig.alive()), LONG)  # type: ignore[misc]
        settle(rig.store, [1e-5], worker)
        os.kill(rig.alive()[-1], signal.SIGKILL)
    until(lambda: rig.epochs(job.id) == [2, 3, 4, 5], LONG)
    assert rig.store.job(job.id).state == "running"


def test_at_most_so_many_searches_run_and_the_others_say_what_they_wait_for(rig: Rig) -> None:
    rig.limit = 2
    attach(rig.store)
    jobs = [stored_job(rig.store) for _ in range(4)]
    rig.begin()
    until(lambda: len(rig.alive()) == 2, LONG)
    until(lambda: all(rig.store.job(job.id).reason != "" for job in jobs[2:]), LONG)
    time.sleep(1.0)
    assert len(rig.searches()) == 2
    rig.store.cancel_job(jobs[0].id)
    os.kill(rig.searches()[0][2], signal.SIGKILL)
    until(lambda: rig.epochs(jobs[2].id) == [1] or rig.epochs(jobs[3].id) == [1], LONG)


@pytest.mark.parametrize("verb", ["cancel_job", "pause_job"])
def test_the_search_of_a_job_that_is_over_or_paused_is_ended_and_that_is_no_death(
    rig: Rig, verb: str
) -> None:
    rig.patience = 0.1
    attach(rig.store)
    job = stored_job(rig.store)
    rig.begin()
    until(lambda: rig.alive() != [], LONG)
    getattr(rig.store, verb)(job.id)
    until(lambda: rig.alive() == [], LONG)
    assert last_end(rig.store, job.id) is None
    if verb == "pause_job":
        rig.store.resume_job(job.id)
        until(lambda: rig.epochs(job.id) == [1, 2], LONG)


def test_a_host_that_is_told_to_stop_ends_its_searches_and_leaves_the_jobs_as_they_are(rig: Rig) -> None:
    attach(rig.store)
    jobs = [stored_job(rig.store) for _ in range(2)]
    rig.begin()
    until(lambda: len(rig.alive()) == 2, LONG)
    assert rig.drain() == [0]
    assert rig.alive() == []
    assert [rig.store.job(job.id).state for job in jobs] == ["running", "running"]
    assert last_end(rig.store, jobs[0].id) is None
    rig.begin()
    until(lambda: len(rig.alive()) == 2, LONG)


# Runners alone: there are several of them.


def test_the_searches_of_a_runner_that_was_killed_go_on_in_another(queued: Rig) -> None:
    queued.limit = 1
    attach(queued.store)
    jobs = [stored_job(queued.store) for _ in range(2)]
    queued.begin()
    queued.begin()
    until(lambda: len(queued.alive()) == 2, LONG)
    queued.begin()  # has room
    queued.hosts[0].kill()
    queued.hosts.pop(0).wait()
    # Whether the one that was killed led or not.
    until(lambda: len(queued.alive()) == 2 and len(queued.searches()) == 3, LONG + 10 * SILENCE)
    lost = queued.searches()[-1][0]
    end = last_end(queued.store, lost)
    assert end is not None
    assert (end.status, end.words) == (None, "the runner of its search was lost")
    assert {queued.store.job(job.id).state for job in jobs} == {"running"}


def test_a_leader_that_stands_still_is_followed_by_another_runner_and_stands_for_election_again(
    queued: Rig, capfd: pytest.CaptureFixture[str]
) -> None:
    attach(queued.store)
    queued.begin()
    until(lambda: _leaders(queued) == 1, LONG)
    first = queued.hosts[0]
    queued.begin()
    until(lambda: _leaders(queued) == 2, LONG)
    first.send_signal(signal.SIGSTOP)
    try:
        job = stored_job(queued.store)
        until(lambda: queued.epochs(job.id) == [1], LONG)
    finally:
        first.send_signal(signal.SIGCONT)
    # It has noticed before it begins anything: the job has its one search.
    until(lambda: _leaders(queued) == 2, LONG)
    time.sleep(2 * SILENCE)
    assert (queued.epochs(job.id), queued.store.job(job.id).state) == ([1], "running")
    queued.hosts[1].kill()
    queued.hosts.pop(1).wait()
    more = stored_job(queued.store)
    until(lambda: queued.epochs(more.id) == [1], LONG)
    assert "Traceback" not in capfd.readouterr().err


def test_a_runner_that_stood_still_works_again_afterwards_and_its_job_has_one_search(queued: Rig) -> None:
    queued.limit = 2
    attach(queued.store)
    job = stored_job(queued.store)
    queued.begin()
    until(lambda: len(queued.alive()) == 1, LONG)
    first = queued.hosts[0]
    queued.begin()
    first.send_signal(signal.SIGSTOP)
    try:
        time.sleep(4 * SILENCE)
    finally:
        first.send_signal(signal.SIGCONT)
    # Taken for lost meanwhile, so that the search has begun anew, or heard of again before anybody looked.
    time.sleep(2 * SILENCE)
    until(lambda: len(queued.alive()) == 1, LONG)
    assert queued.store.job(job.id).state == "running"
    queued.hosts[1].kill()
    queued.hosts.pop(1).wait()
    more = stored_job(queued.store)
    until(lambda: queued.epochs(more.id) != [], LONG)


def _leaders(rig: Rig) -> int:
    """How many runners lead or stand for election."""
    query = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE application_name = 'tilewright leader' AND datname = current_database()"
    )
    with psycopg.connect(rig.url) as conn:
        row = conn.execute(query).fetchone()
    assert row is not None
    return int(row[0])
