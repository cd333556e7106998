"""What is forgotten of old jobs, and what stays."""

from contextlib import contextmanager

import pytest
from sqlalchemy import Column, ForeignKey, String, Table, event, func, select

from tilewright.db import InvalidValue, NotFound, check, prune
from tilewright.db.records import NewTrial, PastSearch, Settlement
from tilewright.db.retention_store import KEPT_FASTEST, KEPT_FIRST, KEPT_JOBS
from tilewright.db.sql import pruning
from tilewright.db.sql.tables import attempts, leases, trials
from tilewright.db.upkeep import Pruned

MANY = KEPT_FIRST + KEPT_FASTEST + 20


def tuned(scene, count=MANY, tag="c", slowest=0.0):
    """A completed job whose trials get slower from the last to the first."""
    job = scene.job(origin="local", trials=count)
    scene.store.begin_search(job.id)
    names = [f"{tag}{n}" for n in range(count)]
    new = [NewTrial(n, 0, name, "tiled", "{}", b"\x00", 1, 0) for n, name in enumerate(names)]
    scene.store.add_trials(job.id, 1, new)
    for n in range(count):
        seconds = slowest + 1.0 + count - n
        done = Settlement(seconds=seconds, samples=(seconds,), error=0.5, codegen_version="g1")
        scene.store.settle_local(job.id, 1, n, done)
    scene.store.finish_job(job.id, 1, "completed", "")
    return scene.store.job(job.id)


def numbers(scene, job):
    return [trial.number for trial in scene.store.trials(job.id)]


def test_what_a_later_search_begins_with_stays_and_the_rest_of_an_old_job_goes(scene):
    job = tuned(scene)
    search = PastSearch("w", "t", "h", None, 1.0)
    before = scene.store.sampled_trials(search, KEPT_FASTEST, KEPT_FIRST)
    best = scene.best()
    assert scene.store.prune(0.0).trials == MANY - KEPT_FIRST - KEPT_FASTEST
    assert numbers(scene, job) == [*range(KEPT_FIRST), *range(MANY - KEPT_FASTEST, MANY)]
    assert scene.store.sampled_trials(search, KEPT_FASTEST, KEPT_FIRST) == before
    assert scene.best() == best
    assert scene.store.events(job.id) == []


def test_the_newest_jobs_of_a_key_stay_and_an_older_one_goes_whole(scene):
    tuned(scene, count=1, tag="champion")  # what stands, so that the others need not
    old = tuned(scene, count=3, tag="old", slowest=100.0)
    kept = [tuned(scene, count=2, tag=f"k{n}-") for n in range(KEPT_JOBS)]
    assert scene.store.prune(0.0) == Pruned(jobs=1, trials=3, events=3 * (KEPT_JOBS + 2), leases=0)
    with pytest.raises(NotFound):
        scene.store.job(old.id)
    assert [numbers(scene, job) for job in kept] == [[0, 1]] * KEPT_JOBS


def test_a_dry_run_says_what_would_go_and_forgets_nothing(scene):
    tuned(scene, count=3, tag="old", slowest=100.0)
    for n in range(KEPT_JOBS):
        tuned(scene, count=2, tag=f"k{n}-")
    would = scene.store.prune(0.0, dry_run=True)
    assert scene.store.prune(0.0, dry_run=True) == would
    assert scene.store.prune(0.0) == would
    assert scene.store.prune(0.0) == Pruned(0, 0, 0, 0)


def test_the_evidence_behind_a_best_stays_with_its_job(scene):
    best = tuned(scene, count=3, tag="old")
    for n in range(KEPT_JOBS):
        tuned(scene, count=2, tag=f"k{n}-", slowest=100.0)
    served = scene.best()
    scene.store.prune(0.0)
    assert scene.best() == served
    assert numbers(scene, best) == [2]
    with scene.store._database.read() as conn:
        evidence = select(func.count()).where(attempts.c.trial == served.trial)
        assert conn.execute(evidence).scalar_one() == 1


def test_a_retired_candidate_and_what_a_job_began_with_stay(scene):
    tuned(scene, count=1, tag="champion")  # what stands, so that the others need not
    old = tuned(scene, count=3, tag="old", slowest=100.0)
    scene.store.retire(f"{old.id}.1", "does not replay")
    for n in range(KEPT_JOBS):
        tuned(scene, count=2, tag=f"k{n}-")
    later = scene.searched(0)
    scene.store.put_warm_start(later.id, 1, "{}", known=1, best=f"{old.id}.0")
    scene.store.prune(0.0)
    assert numbers(scene, old) == [0, 1]


def test_a_row_of_a_table_that_comes_later_keeps_its_trial(scene):
    tuned(scene, count=1, tag="champion")  # what stands, so that the others need not
    old = tuned(scene, count=3, tag="old", slowest=100.0)
    for n in range(KEPT_JOBS):
        tuned(scene, count=2, tag=f"k{n}-")
    pins = Table("notes_of_trials", pruning.metadata, Column("trial", String, ForeignKey("trials.id")))
    try:
        with scene.store._database.write() as conn:
            pins.create(conn)
            conn.execute(pins.insert().values(trial=f"{old.id}.1"))
        scene.store.prune(0.0)
        assert numbers(scene, old) == [1]
    finally:
        pruning.metadata.remove(pins)


def test_a_job_that_is_not_over_keeps_everything(scene):
    running, paused = scene.searched(3, tag="r"), scene.searched(3, tag="p")
    scene.store.pause_job(paused.id)
    before = [scene.store.trials(job.id) for job in (running, paused)]
    assert scene.store.prune(0.0) == Pruned(0, 0, 0, 0)
    assert [scene.store.trials(job.id) for job in (running, paused)] == before


def test_what_ended_a_moment_ago_is_not_old(scene):
    job = tuned(scene)
    assert scene.store.prune(3600.0) == Pruned(0, 0, 0, 0)
    assert numbers(scene, job) == list(range(MANY))


def test_a_job_that_is_resumed_meanwhile_keeps_what_it_has(scene, monkeypatch):
    old = scene.searched(3, tag="old")
    scene.store.finish_job(old.id, 1, "failed", "")
    look = pruning._for_warm_starts

    def resumed_after_the_look(conn, job):
        needed = look(conn, job)
        scene.store.resume_job(job)
        return needed

    monkeypatch.setattr(pruning, "_for_warm_starts", resumed_after_the_look)
    assert scene.store.prune(0.0) == Pruned(0, 0, 0, 0)
    assert numbers(scene, old) == [0, 1, 2]


def test_leases_that_nothing_refers_to_go_with_the_trials(scene, success):
    tuned(scene, count=1, tag="champion")  # what stands, so that the others need not
    job = scene.searched(2)
    lease = scene.claim(scene.worker())
    scene.store.settle(lease.id, [success(item, 9.0) for item in lease.items])
    scene.store.finish_job(job.id, 1, "completed", "")
    for n in range(KEPT_JOBS):
        tuned(scene, count=1, tag=f"k{n}-")
    forgotten = scene.store.prune(0.0)
    assert (forgotten.jobs, forgotten.trials, forgotten.leases) == (1, 2, 1)
    with scene.store._database.read() as conn:
        assert conn.execute(select(func.count()).select_from(leases)).scalar_one() == 0
        assert conn.execute(select(func.count()).where(trials.c.job == job.id)).scalar_one() == 0


def test_a_database_that_forgot_is_in_order(scene):
    tuned(scene)
    assert prune(scene.url, 0.0).trials > 0
    assert [problem for problem in check(scene.url) if problem.rule.startswith(("a job", "events"))] == []


def test_a_time_that_is_none_is_refused(scene):
    with pytest.raises(InvalidValue, match="older_than"):
        scene.store.prune(-1.0)


@pytest.fixture
def transactions(scene, monkeypatch):
    """How many rows each transaction of the store changes from now on, and waits that are not waited."""
    changed = []
    write = scene.store._database.inner.write

    @contextmanager
    def counted():
        rows = []

        def count(conn, cursor, *_):
            if not cursor.description:
                rows.append(max(cursor.rowcount, 0))

        with write() as conn:
            event.listen(conn, "after_cursor_execute", count)
            yield conn
        changed.append(sum(rows))

    monkeypatch.setattr(scene.store._database.inner, "write", counted)
    monkeypatch.setattr(pruning.time, "sleep", lambda seconds: changed.append("others"))
    return changed


def test_much_is_forgotten_in_small_transactions_and_others_have_a_turn_after_each(
    scene, transactions, monkeypatch
):
    monkeypatch.setattr(pruning, "_AT_ONCE", 4)
    tuned(scene, count=1, tag="champion")  # what stands, so that the others need not
    old = tuned(scene, count=10, tag="old", slowest=100.0)
    for _ in range(20):
        scene.store.add_event(old.id, "note", "{}")
    for n in range(KEPT_JOBS):
        tuned(scene, count=1, tag=f"k{n}-", slowest=200.0)
    transactions.clear()
    assert scene.store.prune(0.0) == Pruned(jobs=1, trials=10, events=3 * (KEPT_JOBS + 2) + 20, leases=0)
    assert set(transactions[1::2]) == {"others"}
    assert max(transactions[::2]) == 8  # four trials, each with an attempt


def test_a_job_of_which_nothing_goes_is_not_written(scene, transactions):
    job = tuned(scene, count=3)
    scene.store.prune(0.0)
    transactions.clear()
    assert scene.store.prune(0.0) == Pruned(0, 0, 0, 0)
    assert (transactions, numbers(scene, job)) == ([], [0, 1, 2])
