from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from service_harness import (
    FACTS,
    HARDWARE,
    MATMUL,
    Api,
    attach,
    searched,
    served,
    serving,
    settle,
    stored_job,
    trials,
)

from tilewright.db import Store
from tilewright.measure.messages import (
    LeaseLost,
    LeaseUpdate,
    MeasureResult,
    NotATilewright,
    Registration,
    SourceRefused,
    SourceUnreachable,
    Superseded,
    Unauthorized,
    VersionRefused,
    WorkerHello,
)
from tilewright.service.client import ApiError, Client, InsecureToken
from tilewright.service.connect import connect
from tilewright.service.worker_client import WorkerClient

HELLO = WorkerHello(1, "w1", "5" * 32, HARDWARE, FACTS, {"codegen": "7"})
HEX = "0" * 64


@pytest.fixture
def client(api: Api) -> Iterator[Client]:
    with Client(api.url) as opened:
        yield opened


@contextlib.contextmanager
def _listening(answer: bytes | None) -> Iterator[str]:
    """A TCP server that is not tilewright: it accepts, and sends `answer`, if anything, to whoever speaks."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.1)
        over = threading.Event()

        def serve() -> None:
            connections = []
            while not over.is_set():
                with contextlib.suppress(TimeoutError):
                    connection, _ = listener.accept()
                    connections.append(connection)
                    if answer is not None:
                        connection.recv(65536)
                        connection.sendall(answer)
                        connection.close()
            for connection in connections:
                connection.close()

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        over.set()
        thread.join()


def _closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.fixture
def source(api: Api) -> Iterator[WorkerClient]:
    """A worker's source of work, with a token for it."""
    with Client(api.url, api.store.create_token("t", ["worker"])[1]) as opened:
        yield WorkerClient(opened.transport)


def _result(item: str, attempt: int) -> MeasureResult:
    return MeasureResult(item, attempt, seconds=1e-5, samples=(1e-5,), error=0.5)


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


def test_an_unchanged_schedule_is_not_sent_again(api: Api) -> None:
    worker = attach(api.store)
    job = searched(api.store, 1)
    settle(api.store, [1e-5], worker)
    statuses: list[int] = []

    def forward(request: httpx.Request) -> httpx.Response:
        answer = httpx.get(request.url.copy_with(), headers=request.headers, trust_env=False)
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


def test_a_closed_port_is_unreachable_naming_it() -> None:
    url = f"http://127.0.0.1:{_closed_port()}"
    with Client(url) as client, pytest.raises(SourceUnreachable) as unreachable:
        client.job("job_1")
    assert str(unreachable.value) == f"nothing answers at {url}: [Errno 111] Connection refused"


def test_looking_a_schedule_up_where_nobody_answers_takes_at_most_a_second() -> None:
    with _listening(None) as url, Client(url) as client:
        begun = time.monotonic()
        with pytest.raises(ConnectionError):
            client.best(HEX, HEX, HEX)
        assert time.monotonic() - begun < 1.0


async def _elsewhere(scope: Any, receive: Any, send: Any) -> None:
    headers = [(b"content-type", b"text/html")]
    await send({"type": "http.response.start", "status": 404, "headers": headers})
    await send({"type": "http.response.body", "body": b"<h1>Not here</h1>"})


def test_another_http_server_is_recognised_and_described() -> None:
    with served(_elsewhere) as url, Client(url) as client:
        with pytest.raises(NotATilewright) as found:
            client.jobs().__next__()
        assert str(found.value) == (
            f"expected a tilewright service at {url}, found an HTTP server (uvicorn) that answers 404 with "
            "text/html at /version"
        )


def test_a_compiler_that_asks_another_server_is_told_like_one_that_reaches_none() -> None:
    with served(_elsewhere) as url, Client(url) as client:
        with pytest.raises(ConnectionError) as found:
            client.best(HEX, HEX, HEX)
        assert str(found.value).startswith(f"expected a tilewright service at {url}, found an HTTP server")


def test_a_server_that_speaks_no_http_is_recognised() -> None:
    with _listening(b"220 mail.example ESMTP\r\n\r\n") as url, Client(url) as client:
        with pytest.raises(NotATilewright) as found:
            client.job("job_1")
        assert str(found.value).startswith(
            f"expected a tilewright service at {url}, found something that does not speak HTTP"
        )


@pytest.mark.parametrize(
    "answer", [b"", b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{"]
)
def test_a_connection_that_breaks_before_its_answer_is_one_to_a_server_out_of_reach(answer: bytes) -> None:
    """A balancer whose servers are down, or a server that is killed; a worker then tries again."""
    with _listening(answer) as url, Client(url) as client:
        with pytest.raises(SourceUnreachable) as found:
            client.job("job_1")
        said = str(found.value)
        assert said.startswith(f"the connection broke at {url}: ")
        assert said.endswith("; its server is not up, or does not speak HTTP")


def test_a_server_that_says_nothing_is_given_up_in_time() -> None:
    with _listening(None) as url, Client(url) as client:
        begun = time.monotonic()
        with pytest.raises(SourceUnreachable):
            client.job("job_1")
        assert time.monotonic() - begun < 5


def test_a_token_is_not_shown_to_what_is_not_tilewright() -> None:
    seen: list[httpx.Headers] = []

    def elsewhere(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers)
        return httpx.Response(200, json={"service": "other"})

    with (
        Client("https://tune.example", "secret", handler=httpx.MockTransport(elsewhere)) as client,
        pytest.raises(NotATilewright),
    ):
        client.job("job_1")
    assert ["authorization" in headers for headers in seen] == [False]


def test_a_token_is_not_sent_over_http_to_another_machine() -> None:
    with pytest.raises(InsecureToken) as refused:
        Client("http://tune.example", "secret")
    assert str(refused.value) == (
        "refusing to send the token over http to tune.example: anyone on the way can read it; "
        "use https, or allow it with --insecure-http (insecure_http=True)"
    )


@pytest.mark.parametrize("url", ["https://tune.example", "http://localhost:1", "http://[::1]:1"])
def test_a_token_is_sent_over_https_and_to_this_machine(url: str) -> None:
    Client(url, "secret").close()


def test_insecure_http_can_be_allowed() -> None:
    Client("http://tune.example", "secret", insecure_http=True).close()


@pytest.mark.parametrize("url", ["tune.example", "ftp://tune.example", "http://", "http://host:port"])
def test_what_is_no_url_of_a_server_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="URL"):
        Client(url)


def _flaky(failures: int, status: int | None) -> tuple[httpx.MockTransport, list[str]]:
    """A server whose first calls beyond the handshake break, or answer `status`."""
    calls: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/version":
            return httpx.Response(200, json={"service": "tilewright"})
        calls.append(request.method)
        if len(calls) > failures:
            return httpx.Response(200, json={"operators": []})
        if status is None:
            raise httpx.ReadError("reset")
        return httpx.Response(status, json={"code": "store-unavailable", "detail": "busy"})

    return httpx.MockTransport(answer), calls


@pytest.mark.parametrize("status", [None, 503])
def test_what_only_reads_is_tried_again(status: int | None) -> None:
    handler, calls = _flaky(2, status)
    with Client("http://127.0.0.1:1", handler=handler) as client:
        assert (client.operators(), calls) == ([], ["GET"] * 3)


def test_a_job_whose_answer_is_lost_is_submitted_again_as_the_same_request(api: Api) -> None:
    """The server makes the job, and the first two answers are lost on their way."""
    keys: list[str] = []

    def losing(request: httpx.Request) -> httpx.Response:
        sent = {"content": request.content, "headers": request.headers, "trust_env": False}
        answer = httpx.request(request.method, request.url.copy_with(), **sent)
        if request.method == "POST":
            keys.append(request.headers["idempotency-key"])
            if len(keys) < 3:
                raise httpx.ReadError("reset")
        return answer

    with Client(api.url, handler=httpx.MockTransport(losing)) as client:
        first, second = client.submit(MATMUL), client.submit(MATMUL)
    assert (len(keys), len(set(keys[:3])), len(set(keys))) == (4, 1, 2)
    assert [job.id for job in api.store.jobs().items] == [second.id, first.id]


@pytest.mark.parametrize("status", [429, 409])
def test_a_client_waits_as_long_as_the_server_says(status: int) -> None:
    answers = [
        httpx.Response(status, json={"code": "in-flight", "detail": "wait"}, headers={"Retry-After": "0"}),
        httpx.Response(200, json={"operators": []}),
    ]
    seen: list[int] = []

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/version":
            return httpx.Response(200, json={"service": "tilewright"})
        seen.append(1)
        return answers[len(seen) - 1]

    with Client("http://127.0.0.1:1", handler=httpx.MockTransport(answer)) as client:
        assert (client.operators(), len(seen)) == ([], 2)


def test_a_client_does_not_wait_longer_than_it_may() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/version":
            return httpx.Response(200, json={"service": "tilewright"})
        problem = {"code": "quota-exceeded", "detail": "too many"}
        return httpx.Response(429, json=problem, headers={"Retry-After": "3600"})

    handler = httpx.MockTransport(answer)
    with Client("http://127.0.0.1:1", handler=handler) as client, pytest.raises(ApiError, match="too many"):
        client.submit(MATMUL)


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


def test_a_worker_attaches_leases_measures_and_settles(api: Api, source: WorkerClient) -> None:
    job = searched(api.store, 3)
    registration = source.register(HELLO)
    lease = source.lease(2, 0.0)
    assert lease is not None
    source.start(lease.lease, lease.items[0].item, lease.items[0].attempt)
    update = source.settle(lease.lease, [_result(lease.items[0].item, lease.items[0].attempt)])
    source.release(lease.lease)
    assert registration == Registration(api.store.workers()[0].id, 30.0, 10.0, 20.0)
    assert (update.cancelled, update.drain, update.ttl_seconds > 20) == ((), False, True)
    assert [trial.outcome for trial in api.store.trials(job.id)] == ["ok", "pending", "pending"]


def test_a_worker_without_work_is_told_none(api: Api, source: WorkerClient) -> None:
    source.register(HELLO)
    assert source.lease(2, 0.1) is None


def test_renewing_is_answered(api: Api, source: WorkerClient) -> None:
    source.register(HELLO)
    searched(api.store, 3)
    lease = source.lease(2, 0.0)
    assert lease is not None
    assert isinstance(source.renew(lease.lease), LeaseUpdate)


def test_a_worker_without_a_token_is_unauthorized(api: Api) -> None:
    with Client(api.url) as client, pytest.raises(Unauthorized):
        WorkerClient(client.transport).register(HELLO)


def test_a_worker_with_a_token_of_another_scope_is_unauthorized(api: Api) -> None:
    value = api.store.create_token("t", ["jobs:write"])[1]
    with Client(api.url, value) as client, pytest.raises(Unauthorized):
        WorkerClient(client.transport).register(HELLO)


def test_a_superseded_worker_is_told(api: Api, source: WorkerClient) -> None:
    source.register(HELLO)
    attach(api.store, "w1", session="6" * 32)
    with pytest.raises(Superseded):
        source.lease(2, 0.0)


def test_a_worker_whose_lease_was_granted_to_another_is_told(api: Api, source: WorkerClient) -> None:
    source.register(HELLO)
    searched(api.store, 1)
    lease = source.lease(1, 0.0)
    assert lease is not None
    source.release(lease.lease)
    other = attach(api.store, "w2")
    api.store.claim(other.id, other.session, HARDWARE, 1, 30.0)
    with pytest.raises(LeaseLost):
        source.settle(lease.lease, [_result(lease.items[0].item, lease.items[0].attempt)])


def test_a_worker_of_another_protocol_is_refused(api: Api, source: WorkerClient) -> None:
    hello = WorkerHello(3, "w1", "5" * 32, HARDWARE, FACTS, {})
    with pytest.raises(VersionRefused, match="this server speaks protocol 1 and 2 and the worker 3"):
        source.register(hello)


def test_a_call_that_is_refused_for_what_it_says_is_told_why(api: Api, source: WorkerClient) -> None:
    source.register(HELLO)
    with pytest.raises(SourceRefused, match="there is no lease 'nothing'"):
        source.renew("nothing")


def test_a_worker_whose_server_stops_is_told_that_it_is_unreachable(store: Store) -> None:
    with serving(store) as api:
        client = Client(api.url, api.store.create_token("t", ["worker"])[1])
        source = WorkerClient(client.transport)
        source.register(HELLO)
    with client, pytest.raises(SourceUnreachable):
        source.lease(1, 0.0)


def test_connect_to_a_server_gives_its_client(api: Api) -> None:
    source = connect(api.url)
    assert isinstance(source, Client)
    with source:
        assert source.best(HEX, HEX, HEX) is None


def test_connect_to_a_database_gives_its_store(tmp_path: Path) -> None:
    with connect(f"sqlite:///{tmp_path}/a.db") as source:
        assert source.best(HEX, HEX, HEX) is None


def test_connect_to_something_else_is_refused_with_what_is_right() -> None:
    with pytest.raises(ValueError) as refused:
        connect("tilewright.db")
    assert str(refused.value) == (
        "'tilewright.db' is neither a database nor a server; "
        "expected sqlite:///tilewright.db, postgresql://user:password@host:port/database or http://host:port"
    )


def test_connect_to_postgresql_gives_its_store(postgres_url: str) -> None:
    with connect(postgres_url) as source:
        assert source.best(HEX, HEX, HEX) is None


def test_connect_does_not_show_the_password_of_what_it_refuses() -> None:
    with pytest.raises(ValueError) as refused:
        connect("mysql://tuner:hunter2@db.example/tuner")
    assert str(refused.value).startswith("'mysql://tuner:***@db.example/tuner' is neither a database")


def test_trials_that_come_while_a_worker_waits_reach_it(api: Api, source: WorkerClient) -> None:
    source.register(HELLO)
    job = searched(api.store, 0)
    threading.Timer(0.2, api.store.add_trials, [job.id, job.epoch, trials(1)]).start()
    lease = source.lease(1, 5.0)
    assert lease is not None and len(lease.items) == 1
