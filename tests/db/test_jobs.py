import json
from dataclasses import replace

import pytest

from tilewright.db import Conflict, InvalidValue, JobOver, NotFound, StaleSearch
from tilewright.db.records import Job, NewJob

NEW = NewJob("w", "t", "h", 64, 120.0, -3, "evolutionary", 600.0, "http", '{"op": "matmul"}')


def test_a_new_job_is_queued_and_holds_what_was_asked(scene):
    job = scene.store.create_job(NEW)
    assert job == Job(
        id=job.id,
        state="queued",
        reason="",
        workload="w",
        target="t",
        hardware="h",
        trials=64,
        seconds=120.0,
        seed=-3,
        strategy="evolutionary",
        worker_wait=600.0,
        origin="http",
        spec='{"op": "matmul"}',
        epoch=0,
        done=0,
        created_at=job.created_at,
        started_at=None,
        waiting_since=None,
        finished_at=None,
    )


def test_a_job_keeps_its_target_patience_and_history(scene):
    job = scene.store.create_job(replace(NEW, target_seconds=1e-3, patience=16, history="ignore"))
    assert (job.target_seconds, job.patience, job.history) == (1e-3, 16, "ignore")


def test_a_job_is_read_as_it_was_created(scene):
    job = scene.store.create_job(NEW)
    assert scene.store.job(job.id) == job


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"trials": 0}, "trials: must be at least 1, not 0"),
        ({"trials": True}, "trials: must be an integer, not bool"),
        ({"seconds": float("nan")}, "seconds: must be finite, not nan"),
        ({"seconds": -1.0}, "seconds: must be above 0, not -1.0"),
        ({"target_seconds": 0.0}, "target_seconds: must be above 0, not 0.0"),
        ({"patience": 0}, "patience: must be at least 1, not 0"),
        ({"history": "some"}, "history: is 'some', which is none of use, ignore"),
        ({"seed": 1 << 63}, "seed: must be below 2**63"),
        ({"origin": "mail"}, "origin: is 'mail', which is none of http, local"),
        ({"spec": "{]"}, "spec: is not JSON: "),
        ({"worker_wait": float("inf")}, "worker_wait: must be finite, not inf"),
    ],
)
def test_a_job_with_an_impossible_value_is_refused_by_name(scene, change, message):
    with pytest.raises(InvalidValue) as caught:
        scene.store.create_job(replace(NEW, **change))
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("noun", ["workload", "target", "hardware"])
def test_a_job_needs_its_workload_target_and_hardware_stored(scene, noun):
    with pytest.raises(NotFound) as caught:
        scene.store.create_job(replace(NEW, **{noun: "missing"}))
    assert str(caught.value) == f"there is no {noun} 'missing'"


def test_an_unknown_job_is_named(store):
    with pytest.raises(NotFound, match="there is no job 'job_0'"):
        store.job("job_0")


def test_pages_go_from_the_newest_and_stay_stable_while_jobs_are_created(scene):
    made = [scene.job().id for _ in range(5)]
    first = scene.store.jobs(limit=2)
    scene.job()
    second = scene.store.jobs(after=first.next, limit=2)
    third = scene.store.jobs(after=second.next, limit=2)
    listed = [job.id for page in (first, second, third) for job in page.items]
    assert (listed, third.next) == (made[::-1], None)


def test_jobs_are_listed_by_state(scene):
    kept, cancelled = scene.job(), scene.job()
    scene.store.cancel_job(cancelled.id)
    assert [job.id for job in scene.store.jobs(state="queued").items] == [kept.id]


def test_a_page_after_nothing_known_is_refused(store):
    with pytest.raises(InvalidValue, match="after: 'x' is not the end of a page"):
        store.jobs(after="x")


def test_the_first_search_sets_the_job_running(scene):
    job = scene.job()
    assert scene.store.begin_search(job.id) == 1
    now = scene.store.job(job.id)
    assert (now.state, now.epoch, now.started_at is not None) == ("running", 1, True)


def test_a_second_search_keeps_the_start_and_fences_off_the_first(scene):
    job = scene.searched(1)
    assert scene.store.begin_search(job.id) == 2
    with pytest.raises(StaleSearch) as caught:
        scene.add(job, range(1, 2), epoch=1)
    assert str(caught.value) == f"job {job.id} is searched by epoch 2 now, not 1"
    assert scene.store.job(job.id).started_at == job.started_at


def test_a_stale_search_cannot_finish_the_job(scene):
    job = scene.searched(1)
    scene.store.begin_search(job.id)
    with pytest.raises(StaleSearch):
        scene.store.finish_job(job.id, 1, "completed", "")
    assert scene.store.job(job.id).state == "running"


def test_no_search_begins_on_a_job_that_is_over(scene):
    job = scene.job()
    scene.store.cancel_job(job.id)
    with pytest.raises(JobOver, match=f"job {job.id} is cancelled"):
        scene.store.begin_search(job.id)


def test_a_waiting_job_says_for_what_and_since_when(scene):
    job = scene.searched(0)
    first = scene.store.set_waiting(job.id, "no worker for hardware h")
    again = scene.store.set_waiting(job.id, "no worker for hardware h, still")
    assert (again.state, again.reason) == ("waiting", "no worker for hardware h, still")
    assert again.waiting_since == first.waiting_since is not None


def test_a_job_that_runs_again_waits_for_nothing(scene):
    job = scene.searched(0)
    scene.store.set_waiting(job.id, "no worker for hardware h")
    now = scene.store.set_running(job.id)
    assert (now.state, now.reason, now.waiting_since) == ("running", "", None)


def test_a_finished_job_does_not_wait(scene):
    job = scene.searched(0)
    finished = scene.store.finish_job(job.id, 1, "completed", "all 64 trials")
    assert scene.store.set_waiting(job.id, "a worker") == finished


def test_only_jobs_that_waited_too_long_are_overdue(scene):
    late, patient = scene.job(wait=0.0), scene.job(wait=600.0)
    for job in (late, patient):
        scene.store.set_waiting(job.id, "no worker for hardware h")
    while scene.store.now() <= scene.store.job(late.id).waiting_since:
        pass
    assert [job.id for job in scene.store.overdue_jobs()] == [late.id]


def test_a_job_is_bound_to_hardware_once(scene):
    job = scene.job(hardware=None)
    assert scene.store.bind_hardware(job.id, "h").hardware == "h"
    assert scene.store.bind_hardware(job.id, "h").hardware == "h"
    with pytest.raises(Conflict, match=f"job {job.id} is bound to hardware h"):
        scene.store.bind_hardware(job.id, "h2")


def test_finishing_is_final_and_repeatable(scene):
    job = scene.searched(0)
    finished = scene.store.finish_job(job.id, 1, "exhausted", "no candidate is left")
    assert scene.store.finish_job(job.id, None, "failed", "late") == finished
    assert (finished.state, finished.reason) == ("exhausted", "no candidate is left")
    assert finished.finished_at is not None


def test_a_job_cannot_finish_into_a_state_that_is_not_final(scene):
    with pytest.raises(InvalidValue, match="state: is 'running'"):
        scene.store.finish_job(scene.job().id, None, "running", "")


def test_cancelling_is_idempotent_and_leaves_a_finished_job_alone(scene):
    job, done = scene.job(), scene.job()
    finished = scene.store.finish_job(done.id, None, "completed", "")
    assert scene.store.cancel_job(job.id) == scene.store.cancel_job(job.id)
    assert scene.store.cancel_job(done.id) == finished


def test_the_end_of_a_job_cancels_what_nobody_has_started(scene):
    job = scene.searched(3)
    lease = scene.claim(scene.worker(), max_items=2)
    scene.store.start(lease.id, lease.items[0].trial, 1)
    scene.store.cancel_job(job.id)
    assert scene.outcomes(job) == ["started", "cancelled", "cancelled"]


def test_a_job_that_is_over_takes_no_trials(scene):
    job = scene.searched(1)
    scene.store.cancel_job(job.id)
    with pytest.raises(JobOver) as caught:
        scene.add(job, range(1, 2))
    assert str(caught.value) == f"job {job.id} is cancelled and takes no more trials"


def test_unfinished_jobs_come_oldest_first_and_by_origin(scene):
    jobs = [scene.job(), scene.job(origin="local"), scene.job(), scene.job()]
    scene.store.cancel_job(jobs[2].id)
    assert [job.id for job in scene.store.unfinished_jobs()] == [jobs[i].id for i in (0, 1, 3)]
    assert [job.id for job in scene.store.unfinished_jobs("http")] == [jobs[i].id for i in (0, 3)]


def test_each_change_of_state_is_an_event(scene):
    job = scene.job()
    scene.store.begin_search(job.id)
    scene.store.set_waiting(job.id, "no worker")
    scene.store.set_running(job.id)
    scene.store.finish_job(job.id, 1, "completed", "all trials")
    told = [(event.seq, event.kind, json.loads(event.data)) for event in scene.store.events(job.id)]
    assert told == [
        (1, "state", {"state": "queued", "reason": ""}),
        (2, "state", {"state": "running", "reason": ""}),
        (3, "state", {"state": "waiting", "reason": "no worker"}),
        (4, "state", {"state": "running", "reason": ""}),
        (5, "state", {"state": "completed", "reason": "all trials"}),
    ]


def test_events_are_read_on_from_a_number(scene):
    job = scene.job()
    assert [scene.store.add_event(job.id, "best", f'{{"n": {n}}}') for n in range(3)] == [2, 3, 4]
    assert [event.data for event in scene.store.events(job.id, after=2, limit=1)] == ['{"n": 1}']


def test_an_event_with_nan_is_refused(scene):
    with pytest.raises(InvalidValue, match="data: is not JSON: NaN is not a JSON number"):
        scene.store.add_event(scene.job().id, "best", '{"seconds": NaN}')


def test_the_last_event_of_a_kind_is_the_newest_one(scene):
    job, other = scene.job(), scene.job()
    for n in range(3):
        scene.store.add_event(job.id, "model", f'{{"n": {n}}}')
    scene.store.add_event(job.id, "best", "{}")
    scene.store.add_event(other.id, "report", "{}")
    last = scene.store.last_event(job.id, "model")
    assert (last.seq, last.kind, last.data) == (4, "model", '{"n": 2}')
    assert scene.store.last_event(job.id, "report") is None
    with pytest.raises(NotFound):
        scene.store.last_event("job_000000000000", "model")


def test_a_queued_job_can_say_why_it_does_not_get_on_until_its_search_begins(scene):
    job = scene.job()
    noted = scene.store.note(job.id, "others are first")
    scene.store.begin_search(job.id)
    begun = scene.store.job(job.id)
    assert [(noted.state, noted.reason), (begun.state, begun.reason)] == [
        ("queued", "others are first"),
        ("running", ""),
    ]


def test_a_note_changes_no_job_that_waits_or_has_ended(scene):
    waiting, ended = scene.job(), scene.job()
    scene.store.set_waiting(waiting.id, "no worker")
    scene.store.cancel_job(ended.id)
    reasons = [scene.store.note(job.id, "others are first").reason for job in (waiting, ended)]
    assert reasons == ["no worker", "cancelled"]


def test_the_same_note_again_is_no_event(scene):
    job = scene.job()
    for _ in range(2):
        scene.store.note(job.id, "others are first")
    assert [event.data for event in scene.store.events(job.id)] == [
        '{"state": "queued", "reason": ""}',
        '{"state": "queued", "reason": "others are first"}',
    ]
