"""Calls that are stored together, answers to repeat, quotas, and the audit log."""

import threading
import time

import pytest

from tilewright.db import Conflict, NotFound, QuotaExceeded, open_store
from tilewright.db.records import NewJob, TokenLimits
from tilewright.db.service_records import Census, NewAudit, StoredAnswer

ANSWER = StoredAnswer("d1", 202, '{"location": "/v1/jobs/j"}', '{"id": "j"}')


def _owned(scene, owner, trials=10):
    return scene.store.create_job(
        NewJob("w", "t", "h", trials, None, 0, "evolutionary", 600.0, "http", "{}", owner=owner)
    )


def test_calls_within_one_unit_are_seen_within_and_outside_once_it_ends(scene):
    with open_store(scene.url) as other, scene.store.together():
        job = scene.job()
        within = scene.store.job(job.id).id
        with pytest.raises(NotFound):
            other.job(job.id)
    assert (within, scene.store.job(job.id).id) == (job.id, job.id)


def test_a_unit_that_raises_stores_nothing(scene):
    with pytest.raises(RuntimeError), scene.store.together():
        scene.job()
        scene.store.cancel_job(scene.job().id)
        raise RuntimeError
    assert scene.store.jobs().items == ()


def test_a_call_that_fails_and_is_caught_leaves_the_rest_of_its_unit(scene):
    with scene.store.together():
        job = scene.searched(2)
        with pytest.raises(Conflict):
            scene.store.add_trials(job.id, 1, [scene.candidate(5), scene.candidate(0, tag="other")])
    assert [trial.number for trial in scene.store.trials(job.id)] == [0, 1]


def test_a_unit_within_another_ends_with_it(scene):
    with pytest.raises(RuntimeError), scene.store.together():
        with scene.store.together():
            scene.job()
        raise RuntimeError
    assert scene.store.jobs().items == ()


def test_a_unit_is_of_its_thread_alone(scene):
    with scene.store.together():
        seen = []
        reader = threading.Thread(target=lambda: seen.append(len(scene.store.jobs().items)))
        scene.job()
        reader.start()
        reader.join()
    assert (seen, len(scene.store.jobs().items)) == ([0], 1)


def test_an_answer_is_kept_as_it_was_given(store):
    store.keep_answer("k", ANSWER, 60.0)
    assert (store.answer("k"), store.answer("other")) == (ANSWER, None)


def test_an_answer_is_kept_once_and_what_came_with_the_second_is_not_stored(scene):
    scene.store.keep_answer("k", ANSWER, 60.0)
    with pytest.raises(Conflict), scene.store.together():
        scene.job()
        scene.store.keep_answer("k", StoredAnswer("d2", 202, "{}", "{}"), 60.0)
    assert (scene.store.answer("k"), scene.store.jobs().items) == (ANSWER, ())


def test_an_answer_is_forgotten_in_time_and_its_key_is_free(store):
    store.keep_answer("k", ANSWER, 0.01)
    time.sleep(0.05)
    gone = store.answer("k")
    store.keep_answer("k", ANSWER, 60.0)
    assert (gone, store.answer("k")) == (None, ANSWER)


def test_a_quota_counts_the_unfinished_jobs_of_its_owner_alone(scene):
    mine = [_owned(scene, "token_a") for _ in range(2)]
    _owned(scene, "token_b")
    _owned(scene, None)
    scene.store.refuse_over_quota("token_a", 2, None)
    with pytest.raises(QuotaExceeded) as caught:
        scene.store.refuse_over_quota("token_a", 1, None)
    scene.store.cancel_job(mine[0].id)
    scene.store.refuse_over_quota("token_a", 1, None)
    scene.store.refuse_over_quota(None, 1, None)
    assert str(caught.value) == ("that would be 2 unfinished jobs, 1 are allowed: wait until some have ended")


def test_a_quota_counts_the_trials_without_a_result(scene, success):
    job = _owned(scene, "token_a", trials=4)
    scene.store.begin_search(job.id)
    scene.add(job, range(4))
    scene.store.refuse_over_quota("token_a", None, 4)
    with pytest.raises(QuotaExceeded) as caught:
        scene.store.refuse_over_quota("token_a", None, 3)
    worker = scene.worker()
    lease = scene.claim(worker, 1)
    scene.store.start(lease.id, lease.items[0].trial, lease.items[0].attempt)
    scene.store.settle(lease.id, [success(lease.items[0])])
    scene.store.refuse_over_quota("token_a", None, 3)
    assert (caught.value.what, caught.value.has, caught.value.most) == ("trials without a result", 4, 3)


def test_jobs_that_are_made_at_once_do_not_exceed_a_quota_together(scene):
    outcomes = []
    gate = threading.Barrier(4)

    def submit():
        gate.wait()
        try:
            with scene.store.together():
                _owned(scene, "token_a")
                scene.store.refuse_over_quota("token_a", 2, None)
            outcomes.append("made")
        except QuotaExceeded:
            outcomes.append("refused")

    threads = [threading.Thread(target=submit) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["made", "made", "refused", "refused"]


def test_the_audit_log_is_read_the_newest_first_in_pages(store):
    for number in range(3):
        store.add_audit(NewAudit("token_a", "lab", "10.0.0.1", "cancel_job", f"/v1/jobs/j{number}", "done"))
    store.add_audit(NewAudit("token_b", "other", "10.0.0.2", "pause_job", "/v1/jobs/j0", "job-over"))
    first = store.audit(limit=2)
    store.add_audit(NewAudit("token_b", "other", "", "resume_job", "", "done"))
    rest = store.audit(after=int(first.next), limit=2)
    assert [e.subject for e in (*first.items, *rest.items)] == [
        "/v1/jobs/j0",
        "/v1/jobs/j2",
        "/v1/jobs/j1",
        "/v1/jobs/j0",
    ]
    assert ([e.verb for e in store.audit(actor="token_b").items], rest.next) == (
        ["resume_job", "pause_job"],
        None,
    )


def test_a_text_that_is_too_long_for_the_log_is_cut(store):
    store.add_audit(NewAudit("a", "n" * 1000, "", "v", "s", "done"))
    assert store.audit().items[0].name == "n" * 256


def test_a_census_counts_what_there_is(scene, success):
    job = scene.searched(3)
    scene.store.cancel_job(scene.searched(2, tag="d").id)
    scene.job()
    worker = scene.worker()
    lease = scene.claim(worker, 2)
    scene.store.start(lease.id, lease.items[0].trial, lease.items[0].attempt)
    counted = scene.store.census()
    assert {state: n for state, n in counted.jobs.items() if n} == {"running": 1, "cancelled": 1, "queued": 1}
    assert {state: n for state, n in counted.workers.items() if n} == {"online": 1}
    assert (counted.leases, counted.queued, counted.started, counted.searches) == (1, 2, 1, 1)
    assert counted.oldest_queued > 0 and counted.search_seconds >= 0 and isinstance(counted, Census)
    assert job.id


def test_pages_of_tokens_are_stable_while_tokens_are_made(store):
    made = [store.create_token(f"t{n}", ["worker"])[0].id for n in range(3)]
    first = store.tokens_page(limit=2)
    late = store.create_token("late", ["worker"])[0].id
    rest = store.tokens_page(first.next, 2)
    assert [token.id for token in (*first.items, *rest.items)] == [*made, late]


def test_a_token_has_the_limits_that_it_was_made_with(store):
    token, secret = store.create_token("lab", ["jobs:write"], limits=TokenLimits(2, 300, 5.0))
    assert (token.max_jobs, token.max_trials, token.rate) == (2, 300, 5.0)
    assert (store.token_by_secret(secret), secret.startswith("tw_")) == (token, True)
