"""Pause, resume, extend and cancel over HTTP: cases A2, A3 and A4 of the service's part."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from service_harness import HARDWARE, Api, attach, problem, searched, settle, stored_job
from shepherding import Children, processes, supervised, until

from tilewright.db import Store
from tilewright.db.records import Job
from tilewright.db.words import FINAL_JOB_STATES, JOB_STATES
from tilewright.service.client import ApiError, Client
from tilewright.service.search_process import Invocation

COMPLETE = (409, "already-complete", "The job has used its budget up")
CONFLICT = (409, "conflict", "The request is out of date")
OVER = (409, "job-over", "The job has ended")
INVALID = (422, "invalid-request", "The request does not say what this route needs")


@pytest.fixture
def client(api: Api) -> Iterator[Client]:
    with Client(api.url) as client:
        yield client


def in_state(store: Store, state: str) -> Job:
    job = stored_job(store) if state == "queued" else searched(store, 4)
    if state == "waiting":
        store.set_waiting(job.id, "no worker")
    elif state == "paused":
        store.pause_job(job.id)
    elif state in FINAL_JOB_STATES:
        store.finish_job(job.id, 1, state, f"it is {state}")  # type: ignore[arg-type]
    return store.job(job.id)


@pytest.mark.parametrize("state", JOB_STATES)
def test_a2_cancel_is_answered_with_2xx_in_every_state_and_ends_the_job(api: Api, state: str) -> None:
    job = in_state(api.store, state)
    answer = api.http.post(f"/v1/jobs/{job.id}:cancel")
    expected = state if state in FINAL_JOB_STATES else "cancelled"
    assert (answer.status_code, answer.json()["state"]) == (200, expected)


def test_a2_every_trial_of_a_job_that_is_cancelled_has_an_end(api: Api) -> None:
    worker = attach(api.store)
    job = searched(api.store, 4)
    lease = api.store.claim(worker.id, worker.session, HARDWARE, 2, 30.0)
    assert lease is not None
    api.store.start(lease.id, lease.items[0].trial, 1)
    api.http.post(f"/v1/jobs/{job.id}:cancel")
    api.store.release(lease.id)
    assert {trial.outcome for trial in api.store.trials(job.id)} == {"cancelled"}


@pytest.mark.parametrize(
    ("state", "then"),
    [
        ("queued", "queued"),
        ("waiting", "waiting"),
        ("running", "running"),
        ("paused", "running"),
        ("cancelled", "running"),
        ("failed", "running"),
    ],
)
def test_a3_resume_is_defined_in_every_state_and_keeps_the_queue(api: Api, state: str, then: str) -> None:
    job = in_state(api.store, state)
    answer = api.http.post(f"/v1/jobs/{job.id}:resume")
    assert (answer.status_code, answer.json()["state"]) == (200, then)
    assert api.store.trial_counts(job.id)["pending"] == (0 if state == "queued" else 4)


@pytest.mark.parametrize("state", ["completed", "exhausted"])
def test_a3_resuming_a_finished_job_says_that_it_is_already_complete(api: Api, state: str) -> None:
    job = in_state(api.store, state)
    detail = f"job {job.id} is already complete (it is {state}): extend its budget to search on"
    assert api.http.post(f"/v1/jobs/{job.id}:resume").json() == problem(*COMPLETE, detail)


def test_a_paused_job_keeps_its_results_and_gives_nothing_out(api: Api) -> None:
    worker = attach(api.store)
    job = searched(api.store, 4)
    settle(api.store, [1e-5], worker)
    for _ in range(2):
        view = api.http.post(f"/v1/jobs/{job.id}:pause").json()
    assert (view["state"], view["reason"], view["progress"]["done"], view["progress"]["eta_seconds"]) == (
        "paused",
        "paused",
        1,
        None,
    )
    assert api.store.claim(worker.id, worker.session, HARDWARE, 8, 30.0) is None


def test_there_is_nothing_to_pause_of_a_job_that_is_over(api: Api) -> None:
    job = in_state(api.store, "completed")
    detail = f"job {job.id} is completed: there is nothing to pause"
    assert api.http.post(f"/v1/jobs/{job.id}:pause").json() == problem(*OVER, detail)


def test_the_time_of_a_paused_job_stands_still(api: Api) -> None:
    worker = attach(api.store)
    job = searched(api.store, 4)
    settle(api.store, [1e-5], worker)
    api.http.post(f"/v1/jobs/{job.id}:pause")
    elapsed = [api.http.get(f"/v1/jobs/{job.id}").json()["progress"]["elapsed_seconds"] for _ in range(2)]
    assert elapsed[0] == pytest.approx(elapsed[1], abs=1e-6)


def test_a_local_job_is_not_resumed_by_a_server_that_would_not_search_it(api: Api) -> None:
    job = stored_job(api.store, origin="local")
    api.store.pause_job(job.id)
    assert api.http.post(f"/v1/jobs/{job.id}:resume").json() == problem(
        *CONFLICT,
        f"job {job.id} is tuned by a process of its own, not by this server: go on with "
        f"tilewright.resume('{job.id}', store) or `tilewright tune … --resume` beside its database",
    )


def test_a_finished_job_goes_on_with_a_larger_budget(api: Api) -> None:
    job = in_state(api.store, "completed")
    for _ in range(2):
        view = api.http.post(f"/v1/jobs/{job.id}:extend", json={"budget": {"trials": 12}}).json()
    assert (view["state"], view["budget"]["trials"], view["finished_at"]) == ("running", 12, None)


def test_null_lifts_a_limit(api: Api) -> None:
    job = stored_job(api.store, seconds=60.0, patience=4)
    view = api.http.post(
        f"/v1/jobs/{job.id}:extend", json={"budget": {"seconds": None, "patience": 8}}
    ).json()
    assert view["budget"] == {"trials": 8, "seconds": None, "target_seconds": None, "patience": 8}


@pytest.mark.parametrize(
    ("budget", "pointer", "detail"),
    [
        ({"trials": 7}, "/budget/trials", "must be at least 8, not 7: a job is extended, not cut"),
        ({"trials": 100_001}, "/budget/trials", "should be less than or equal to 100000, got 100001"),
        ({"seconds": 60}, "/budget/seconds", "is no limit of this job, which can be extended but not cut"),
        ({}, "/budget", "names nothing that is to be extended"),
        ({"trials": 0}, "/budget/trials", "should be greater than or equal to 1, got 0"),
        (
            {"trails": 9},
            "/budget/trails",
            "unknown key; did you mean 'trials'? known keys: trials, seconds, target_seconds, patience",
        ),
    ],
)
def test_a_budget_that_does_not_extend_is_refused_by_pointer(
    api: Api, budget: dict[str, object], pointer: str, detail: str
) -> None:
    job = stored_job(api.store)
    answer = api.http.post(f"/v1/jobs/{job.id}:extend", json={"budget": budget}).json()
    assert answer["errors"] == [{"pointer": pointer, "detail": detail}]
    assert (answer["status"], api.store.job(job.id)) == (422, job)


def test_a_budget_that_was_used_up_is_no_extension(api: Api) -> None:
    job = in_state(api.store, "completed")
    answer = api.http.post(f"/v1/jobs/{job.id}:extend", json={"budget": {"trials": 8}})
    assert (answer.status_code, answer.json()["code"]) == (409, "already-complete")


def test_the_client_pauses_resumes_and_extends(api: Api, client: Client) -> None:
    job = searched(api.store, 4, seconds=60.0).id
    states = [client.pause(job).state, client.resume(job).state, client.extend(job, trials=12).state]
    lifted = client.extend(job, trials=16, lift=["seconds"]).budget
    assert (states, lifted.trials, lifted.seconds) == (["paused", "running", "running"], 16, None)


def test_the_client_raises_what_the_server_refuses(api: Api, client: Client) -> None:
    job = in_state(api.store, "exhausted").id
    with pytest.raises(ApiError) as refused:
        client.resume(job)
    assert (refused.value.status, refused.value.code) == (409, "already-complete")


# What the shepherd makes of it.


def running(store: Store, children: Children, started: int = 1) -> Callable[[], bool]:
    return lambda: len(children.started) == started and len(processes()) == 1


def test_the_child_of_a_job_that_stays_paused_is_ended_and_another_begins_when_it_goes_on(
    store: Store,
) -> None:
    attach(store)
    job, children = stored_job(store), Children()
    with supervised(store, children, patience=0.1):
        until(running(store, children))
        store.pause_job(job.id)
        until(lambda: not processes())
        store.resume_job(job.id)
        until(running(store, children, 2))
    assert (children.started, store.job(job.id).state) == ([(job.id, 1), (job.id, 2)], "running")


def test_the_child_of_a_job_that_is_paused_for_a_moment_goes_on(store: Store) -> None:
    attach(store)
    job, children = stored_job(store), Children()
    with supervised(store, children, patience=30.0) as shepherd:
        until(running(store, children))
        for _ in range(3):
            store.pause_job(job.id)
            shepherd.wake()
            store.resume_job(job.id)
        until(running(store, children))
    assert len(children.started) == 1


def test_pauses_are_no_deaths_of_the_search(store: Store) -> None:
    attach(store)
    job, children = stored_job(store), Children()
    with supervised(store, children, patience=0.01, restarts=0):
        for started in range(1, 4):
            until(running(store, children, started))
            store.pause_job(job.id)
            until(lambda: not processes())
            store.resume_job(job.id)
        until(running(store, children, 4))
    assert store.job(job.id).state == "running"


def test_a_paused_job_is_still_paused_after_a_restart_and_is_not_searched(store: Store) -> None:
    attach(store)
    job, children = searched(store, 4), Children()
    store.pause_job(job.id)
    with supervised(store, children):
        until(lambda: store.job(job.id).state == "paused")
    assert (children.started, store.trial_counts(job.id)["pending"]) == ([], 4)


def test_a_job_without_a_worker_waits_when_it_is_resumed(store: Store) -> None:
    job = searched(store, 4)
    store.pause_job(job.id)
    with supervised(store, Children()):
        store.resume_job(job.id)
        until(lambda: store.job(job.id).state == "waiting")


def test_the_search_of_an_extended_job_that_ends_is_no_death_and_another_begins(store: Store) -> None:
    attach(store)
    job = stored_job(store)
    quits = (
        "import sys, time; from tilewright.db import open_store; store = open_store(sys.argv[1])\n"
        "while store.job(sys.argv[2]).epoch == int(sys.argv[3]): time.sleep(0.02)\n"
    )
    children = Watching(quits, store)
    with supervised(store, children, restarts=0):
        until(running(store, children))
        store.extend_job(job.id, trials=12)
        until(running(store, children, 2))
    assert (children.started[-1], store.job(job.id).state) == ((job.id, 3), "running")


class Watching(Children):
    """Children that are told the database, the job and the epoch."""

    def __init__(self, script: str, store: Store) -> None:
        super().__init__(script)
        self.url = f"sqlite:///{store._database.inner.path}"  # type: ignore[attr-defined]

    def __call__(self, job: str, epoch: int) -> Invocation:
        command = super().__call__(job, epoch)
        return command._replace(arguments=(*command.arguments, self.url, job, str(epoch)))
