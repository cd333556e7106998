from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
from service_harness import (
    HARDWARE,
    OTHER_FACTS,
    OTHER_HARDWARE,
    FakeParser,
    attach,
    searched,
    settle,
    stored_job,
)
from shepherding import DIE, Children, processes, supervised, until

from tilewright.db import Store
from tilewright.service.child_dispatcher import ChildDispatcher
from tilewright.service.search_process import Invocation, SearchProcess
from tilewright.service.shepherd import Shepherd


def test_a_job_with_a_worker_is_searched_in_a_child(store: Store) -> None:
    attach(store)
    job, children = stored_job(store), Children()
    with supervised(store, children):
        until(lambda: store.job(job.id).state == "running")
        until(lambda: len(processes()) == 1)
        assert children.started == [(job.id, 1)]


def test_a_child_is_started_once(store: Store) -> None:
    attach(store)
    stored_job(store)
    children = Children()
    with supervised(store, children):
        until(lambda: bool(children.started))
        time.sleep(0.3)
        assert len(children.started) == 1


def test_stopping_leaves_no_process_and_the_job_as_it_is(store: Store) -> None:
    attach(store)
    job, children = stored_job(store), Children()
    with supervised(store, children):
        until(lambda: store.job(job.id).state == "running")
    assert (processes(), store.job(job.id).state) == ([], "running")


def test_a_new_shepherd_takes_up_the_jobs_of_the_one_before_under_a_new_epoch(store: Store) -> None:
    attach(store)
    job, children = stored_job(store), Children()
    for epoch in (1, 2):
        with supervised(store, children):
            until(lambda epoch=epoch: len(children.started) == epoch)  # type: ignore[misc]
    assert children.started == [(job.id, 1), (job.id, 2)]


def test_a_job_of_tune_in_another_process_is_left_alone(store: Store) -> None:
    attach(store)
    job, children = stored_job(store, origin="local"), Children()
    with supervised(store, children):
        time.sleep(0.3)
    assert (children.started, store.job(job.id).state) == ([], "queued")


def test_without_a_worker_a_job_waits_and_says_for_what(store: Store) -> None:
    job, children = stored_job(store), Children()
    with supervised(store, children):
        until(lambda: store.job(job.id).state == "waiting")
    assert (store.job(job.id).reason, children.started) == (
        f"no worker for hardware {HARDWARE}; no worker is attached",
        [],
    )


def test_a_job_that_waited_too_long_fails_and_says_for_what(store: Store) -> None:
    job = stored_job(store, worker_wait=0.2)
    with supervised(store, Children()):
        until(lambda: store.job(job.id).state == "failed")
    assert store.job(job.id).reason == f"no worker for hardware {HARDWARE}; no worker is attached, for 0.2 s"


def test_a_job_without_hardware_takes_that_of_the_worker_that_comes(store: Store) -> None:
    job = stored_job(store, hardware=None)
    with supervised(store, Children()):
        until(lambda: store.job(job.id).reason == "no worker attached")
        attach(store)
        until(lambda: store.job(job.id).state == "running")
    assert store.job(job.id).hardware == HARDWARE


def test_a_job_without_hardware_waits_while_several_kinds_are_attached(store: Store) -> None:
    attach(store)
    attach(store, "w2", OTHER_FACTS)
    job = stored_job(store, hardware=None)
    with supervised(store, Children()):
        until(lambda: store.job(job.id).state == "waiting")
    first, second = sorted([f"{HARDWARE} (w1)", f"{OTHER_HARDWARE} (w2)"])
    assert store.job(job.id).reason == (
        f"workers of 2 kinds are attached and the job names none: {first}, {second}"
    )


def test_a_job_whose_target_means_another_one_on_its_hardware_fails(store: Store) -> None:
    job = stored_job(store, hardware=None)  # its target was read as that of FACTS
    children = Children()
    with supervised(store, children):
        attach(store, "w2", OTHER_FACTS)
        until(lambda: store.job(job.id).state == "failed")
    assert (store.job(job.id).reason, children.started) == (
        "its target was read on the server's machine before a worker was attached, and means another on "
        f"hardware {OTHER_HARDWARE}: submit the job again",
        [],
    )


def test_a_job_whose_worker_goes_waits_again_with_its_child(store: Store) -> None:
    worker = attach(store)
    job, children = stored_job(store), Children()
    with supervised(store, children):
        until(lambda: store.job(job.id).state == "running")
        store.set_worker_state(worker.id, "offline", "silent")
        until(lambda: store.job(job.id).state == "waiting")
        attach(store, session="6" * 32)
        until(lambda: store.job(job.id).state == "running")
    assert len(children.started) == 1


def test_a_job_whose_search_ends_by_an_error_fails_with_its_last_words(store: Store) -> None:
    attach(store)
    job, children = stored_job(store), Children(DIE)
    with supervised(store, children):
        until(lambda: store.job(job.id).state == "failed", seconds=5)
    assert (store.job(job.id).reason, len(children.started)) == (
        "its search ended with status 1, 2 times: out of ideas",
        2,
    )


def test_a_search_whose_database_is_away_begins_again_however_often(store: Store) -> None:
    attach(store)
    job, children = stored_job(store), Children("import sys; sys.exit(69)")
    with supervised(store, children):
        until(lambda: len(children.started) >= 7)
    assert (store.job(job.id).state, store.job(job.id).reason) == ("running", "")


def test_a_job_whose_search_cannot_be_started_fails_with_the_reason(store: Store) -> None:
    attach(store)
    job, children = stored_job(store), Children(executable="/nonexistent/python")
    with supervised(store, children):
        until(lambda: store.job(job.id).state == "failed", seconds=5)
    assert store.job(job.id).reason == (
        "its search cannot be started: [Errno 2] No such file or directory: '/nonexistent/python'"
    )


def test_a_search_that_was_killed_is_started_again(store: Store) -> None:
    attach(store)
    job, children = stored_job(store), Children()
    with supervised(store, children):
        for started in (1, 2):
            until(lambda started=started: len(children.started) == started and bool(processes()))  # type: ignore[misc]
            processes()[0].kill()
        until(lambda: len(children.started) == 3)
        assert (store.job(job.id).state, children.started[-1]) == ("running", (job.id, 3))


def test_a_search_that_is_killed_again_and_again_without_a_result_fails_its_job(store: Store) -> None:
    attach(store)
    job, children = stored_job(store), Children(f"import os; os.kill(os.getpid(), {signal.SIGKILL})")
    with supervised(store, children, restarts=2):
        until(lambda: store.job(job.id).state == "failed")
    assert store.job(job.id).reason == ("its search ended by signal 9, 3 times: it wrote nothing to stderr")


def test_results_in_between_forgive_the_deaths_before(store: Store) -> None:
    worker = attach(store)
    job, children = searched(store, 4), Children()
    with supervised(store, children, restarts=1):
        for started in (1, 2, 3):
            until(lambda started=started: len(children.started) == started and bool(processes()))  # type: ignore[misc]
            settle(store, [1e-5], worker)
            processes()[0].kill()
        until(lambda: len(children.started) == 4)
        assert store.job(job.id).state == "running"


def test_the_child_of_a_cancelled_job_is_ended(store: Store) -> None:
    attach(store)
    job = stored_job(store)
    with supervised(store, Children(), patience=0.1):
        until(lambda: store.job(job.id).state == "running")
        store.cancel_job(job.id)
        until(lambda: not processes())


def test_a_job_that_waits_for_its_turn_no_longer_waits_for_a_worker(store: Store) -> None:
    jobs = [stored_job(store, worker_wait=0.8) for _ in range(2)]
    with supervised(store, Children(), max_searches=1):
        until(lambda: all(store.job(job.id).state == "waiting" for job in jobs))
        attach(store)
        time.sleep(1.2)
        assert [store.job(job.id).state for job in jobs] == ["running", "running"]


def test_at_most_so_many_searches_run_at_a_time(store: Store) -> None:
    attach(store)
    jobs = [stored_job(store) for _ in range(3)]
    with supervised(store, Children(), max_searches=2):
        until(lambda: store.job(jobs[1].id).state == "running")
        time.sleep(0.2)
        assert [store.job(job.id).state for job in jobs] == ["running", "running", "queued"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_shepherd_that_crashes_says_so(store: Store) -> None:
    attach(store)
    stored_job(store)
    crashed = threading.Event()

    def bug(job: str, epoch: int) -> Invocation:
        raise RuntimeError("a bug")

    shepherd = Shepherd(store, FakeParser(), ChildDispatcher(store, bug), interval=0.02, on_crash=crashed.set)
    shepherd.start()
    assert crashed.wait(5)
    shepherd.stop()
    assert shepherd.crashed


def test_a_shepherd_that_does_not_run_is_a_problem(store: Store) -> None:
    shepherd = Shepherd(store, FakeParser(), ChildDispatcher(store, Children()))
    assert shepherd.problem() == "the shepherd of searches is not running"


def test_a_child_dies_with_its_parent_even_by_sigkill(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    child = (
        "import os, sys, time; from tilewright.service.parent_death import die_with; "
        f"die_with(int(sys.argv[1])); open({str(pid_file)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    )
    parent = SearchProcess(
        (
            sys.executable,
            "-c",
            "import os, subprocess, sys; "
            f"subprocess.run([sys.executable, '-c', {child!r}, str(os.getpid())])",
        )
    )
    until(lambda: pid_file.exists() and bool(pid_file.read_text()))
    orphan = psutil.Process(int(pid_file.read_text()))
    os.kill(parent.pid, signal.SIGKILL)
    parent.close()
    until(lambda: not orphan.is_running() or orphan.status() == psutil.STATUS_ZOMBIE)
