"""The client of the service: each call, against a server in a thread."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator

import httpx
import pytest
from service_harness import (
    HARDWARE,
    HEX,
    MATMUL,
    Api,
    attach,
    searched,
    settle,
    stored_job,
)

from tilewright.service import best_lookup
from tilewright.service.client import ApiError, Client


@pytest.fixture
def client(api: Api) -> Iterator[Client]:
    with Client(api.url) as opened:
        yield opened


def test_a_submitted_job_comes_back_as_it_is(api: Api, client: Client) -> None:
    job = client.submit(MATMUL, trials=5, seconds=60.0, seed=3, strategy="random", hardware=HARDWARE)
    assert (job.id, job.budget.trials, job.budget.seconds, job.seed, job.strategy, job.hardware) == (
        api.store.jobs().items[0].id,
        5,
        60.0,
        3,
        "random",
        HARDWARE,
    )


def test_a_refused_job_is_an_error_with_the_servers_words(client: Client) -> None:
    with pytest.raises(ApiError) as refused:
        client.submit({"op": "mathmul"})
    assert (refused.value.status, refused.value.code, str(refused.value)) == (
        422,
        "invalid-workload",
        "unknown operator 'mathmul'; operators are matmul",
    )


def test_validating_creates_nothing(api: Api, client: Client) -> None:
    assert (client.validate(MATMUL).valid, api.store.jobs().items) == (True, ())


def test_all_pages_of_jobs_are_read(api: Api, client: Client) -> None:
    ids = [stored_job(api.store).id for _ in range(53)]
    assert [job.id for job in client.jobs()] == ids[::-1]


def test_all_pages_of_trials_are_read(api: Api, client: Client) -> None:
    job = searched(api.store, 105, trials=200)
    assert [trial.number for trial in client.trials(job.id)] == list(range(105))


def test_waiting_for_a_job_ends_with_it(api: Api, client: Client) -> None:
    job = stored_job(api.store)
    threading.Timer(0.3, api.store.cancel_job, [job.id]).start()
    assert client.job(job.id, wait=30).state == "cancelled"


def test_waiting_ends_in_time(api: Api, client: Client) -> None:
    begun = time.monotonic()
    state = client.job(stored_job(api.store).id, wait=0.3).state
    assert (state, time.monotonic() - begun < 3) == ("queued", True)


def test_cancelling_cancels(api: Api, client: Client) -> None:
    assert client.cancel(stored_job(api.store).id).state == "cancelled"


def test_events_come_until_the_jobs_last(api: Api, client: Client) -> None:
    job = stored_job(api.store)
    api.store.add_event(job.id, "best", '{"seconds": 1.0}')
    threading.Timer(0.3, api.store.cancel_job, [job.id]).start()
    assert [(event.seq, event.kind) for event in client.events(job.id)] == [
        (1, "state"),
        (2, "best"),
        (3, "state"),
    ]


def test_events_go_on_where_they_broke_off(api: Api) -> None:
    job = stored_job(api.store)
    for _ in range(3):
        api.store.add_event(job.id, "progress", "{}")
    api.store.cancel_job(job.id)
    seen: list[str] = []

    def breaking(request: httpx.Request) -> httpx.Response:
        """Answers of the server, but the first stream breaks after its second event."""
        answer = httpx.get(request.url.copy_with(), headers=request.headers, trust_env=False)
        if not request.url.path.endswith("/events"):
            return httpx.Response(answer.status_code, content=answer.content, headers={"content-type": "x"})
        seen.append(request.headers["last-event-id"])
        if len(seen) == 1:
            return httpx.Response(200, stream=_Breaking(answer.content))
        return httpx.Response(200, content=answer.content)

    with Client(api.url, handler=httpx.MockTransport(breaking)) as client:
        events = [event.seq for event in client.events(job.id)]
    assert (events, seen) == ([1, 2, 3, 4, 5], ["0", "2"])


class _Breaking(httpx.SyncByteStream):
    """The first two events of a stream, and half of the third."""

    def __init__(self, content: bytes) -> None:
        self._blocks = content.split(b"\n\n")

    def __iter__(self) -> Iterator[bytes]:
        yield b"\n\n".join([*self._blocks[:2], self._blocks[2][:10]])
        raise httpx.ReadError("the connection was reset")


def test_the_best_schedule_comes_as_texts_and_numbers(api: Api, client: Client) -> None:
    worker = attach(api.store)
    job = searched(api.store, 1)
    settle(api.store, [1e-5], worker)
    found = client.best(job.workload, job.target, HARDWARE)
    assert found is not None
    assert (found.trace, found.seconds, found.kind) == ('{"steps":[0]}', 1e-5, "exact")


def test_no_schedule_is_none(client: Client) -> None:
    assert client.best(HEX, HEX, HEX) is None


def test_an_unchanged_schedule_is_not_sent_again(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(best_lookup, "BEST_SECONDS", 60.0)  # a busy machine may take long
    worker = attach(api.store)
    job = searched(api.store, 1)
    settle(api.store, [1e-5], worker)
    statuses: list[int] = []

    def forward(request: httpx.Request) -> httpx.Response:
        # By a client that is there already: making one takes a good part of the time that a lookup may take.
        answer = api.http.get(request.url.copy_with(), headers=request.headers)
        if "schedules" in request.url.path:
            statuses.append(answer.status_code)
        return answer

    with Client(api.url, handler=httpx.MockTransport(forward)) as client:
        first, second = (client.best(job.workload, job.target, HARDWARE) for _ in range(2))
    assert (statuses, first == second) == ([200, 304], True)


def test_operators_and_workers_are_listed(api: Api) -> None:
    attach(api.store)
    with Client(api.url, api.store.create_token("t", ["worker"])[1]) as client:
        workers = [worker.name for worker in client.workers()]
    with Client(api.url) as client:
        operators = [operator.name for operator in client.operators()]
    assert (workers, operators) == (["w1"], ["matmul"])


def test_it_works_under_a_running_event_loop_and_in_a_thread_as_it_does_alone(api: Api) -> None:
    def submit_and_wait() -> str:
        with Client(api.url) as client:
            job = client.submit(MATMUL)
            api.store.cancel_job(job.id)
            return client.job(job.id, wait=5).state

    async def inside() -> str:
        return submit_and_wait()

    async def in_thread() -> str:
        return await asyncio.to_thread(submit_and_wait)

    assert [submit_and_wait(), asyncio.run(inside()), asyncio.run(in_thread())] == ["cancelled"] * 3


def test_several_jobs_are_submitted_together_or_not_at_all(api: Api, client: Client) -> None:
    jobs = [{"workload": {**MATMUL, "n": n}, "budget": {"trials": n}} for n in (32, 64)]
    made = client.submit_all(jobs)
    with pytest.raises(ApiError) as refused:
        client.submit_all([*jobs, {"workload": {"op": "mathmul"}}])
    assert [job.budget.trials for job in made] == [32, 64]
    assert [job.id for job in api.store.jobs().items] == [made[1].id, made[0].id]
    assert (refused.value.code, refused.value.problem["errors"][0]["pointer"]) == (
        "invalid-workload",
        "/jobs/2/workload/op",
    )


def test_tokens_are_made_listed_and_revoked_and_the_audit_log_tells(api: Api) -> None:
    with Client(api.url, api.store.create_token("root", ["admin"])[1]) as client:
        made = client.create_token("lab", ["jobs:write"], max_jobs=2)
        revoked = client.revoke_token(made.token.id)
        names = [token.name for token in client.tokens()]
        verbs = [entry.verb for entry in client.audit()]
    assert (names, verbs) == (["root", "lab"], ["revoke_token", "create_token"])
    assert (revoked.id, revoked.revoked_at is not None, made.token.max_jobs) == (made.token.id, True, 2)


def test_an_id_that_would_reach_another_route_is_refused(client: Client) -> None:
    with pytest.raises(ValueError, match="is no id"):
        client.job("../tokens")
