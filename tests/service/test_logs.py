"""What a server logs: entries with ids, without secrets, that nobody forges."""

from __future__ import annotations

import io
import json
import logging
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from procrastinate.exceptions import ConnectorException
from service_harness import FACTS, HARDWARE, MATMUL, TRACE_ID, Api, searched, serving, stored_job

from tilewright.db import Store
from tilewright.measure.messages import PROTOCOL, Lease, MeasureInput, MeasureResult, WorkerHello
from tilewright.service import lease_calls, worker_logs
from tilewright.service.client import Client
from tilewright.service.logs import configure
from tilewright.service.traces import trace_id_of
from tilewright.service.worker_client import WorkerClient

HOSTILE = "evil\n2026-01-01T00:00:00Z [info] forged\x1b[2J\r\u2028\u202e\x07"


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    stream = io.StringIO()
    yield stream
    for handler in root.handlers[:]:
        root.removeHandler(handler)
    for handler in handlers:
        root.addHandler(handler)
    root.setLevel(level)


@pytest.fixture(autouse=True)
def _quiet_worker() -> Iterator[None]:
    yield
    worker_logs.log.handlers.clear()
    worker_logs.log.propagate = True
    worker_logs.log.setLevel(logging.NOTSET)


def _entries(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_change_is_an_entry_with_its_ids(store: Store, written: io.StringIO) -> None:
    job = stored_job(store)
    with serving(store) as api:
        token, value = store.create_token("lab", ["jobs:write"])
        configure("json", "info", written)
        api.http.post(f"/v1/jobs/{job.id}:cancel", headers={"Authorization": f"Bearer {value}"})
        api.http.get("/v1/jobs")
    (entry,) = _entries(written)
    known = {k: v for k, v in entry.items() if k not in ("timestamp", "seconds", "request_id")}
    assert known == {
        "event": "request",
        "level": "info",
        "logger": "tilewright.http",
        "trace_id": TRACE_ID,
        "method": "POST",
        "route": "/v1/jobs/{job_id}:cancel",
        "status": 200,
        "client": "127.0.0.1",
        "caller": token.id,
        "job": job.id,
    }
    assert len(entry["request_id"]) == 16 and entry["seconds"] > 0


@pytest.mark.parametrize("value", ["Bearer nope", "Basic eA=="])
def test_a_refused_token_is_an_entry_that_says_where_it_came_from(
    store: Store, written: io.StringIO, value: str
) -> None:
    with serving(store) as api:
        configure("json", "info", written)
        api.http.get("/v1/jobs", headers={"Authorization": value})
    (entry,) = _entries(written)
    assert (entry["status"], entry["client"], entry["caller"]) == (401, "127.0.0.1", "unknown")


@pytest.mark.parametrize(
    "sent", [b"CONNECT x:1 HTTP/1.1\r\n\r\n", b"garbage\r\n\r\n", b"GET /livez HTTP/2.0\r\nHost: x\r\n\r\n"]
)
def test_what_is_no_http_is_an_entry_under_the_trace_of_its_answer(
    store: Store, written: io.StringIO, sent: bytes
) -> None:
    with serving(store) as api:
        configure("json", "info", written)
        address = urlsplit(api.url)
        with socket.create_connection((address.hostname, address.port), timeout=10) as connection:
            connection.sendall(sent)
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
    problem = json.loads(answer.partition(b"\r\n\r\n")[2])
    (entry,) = _entries(written)
    del entry["timestamp"]
    assert entry == {
        "event": "request",
        "level": "info",
        "logger": "tilewright.http",
        "trace_id": problem["trace_id"],
        "method": "unknown",
        "route": "none",
        "status": 400,
        "client": "127.0.0.1",
        "caller": "unknown",
        "detail": problem["detail"],
    }


def test_what_the_server_fails_on_is_logged_with_its_trace(store: Store, written: io.StringIO) -> None:
    with serving(store) as api:
        configure("json", "info", written)
        answer = api.http.post("/v1/jobs", json={"workload": {"op": "crash"}})
    failure = next(e for e in _entries(written) if e["logger"] == "tilewright.service")
    assert (failure["level"], failure["trace_id"]) == ("error", answer.json()["trace_id"])
    assert "swordfish" in failure["exception"]


def test_every_request_is_an_entry_where_that_is_asked_for(store: Store, written: io.StringIO) -> None:
    with serving(store) as api:
        configure("json", "debug", written)
        api.http.get("/livez")
    assert [e["route"] for e in _entries(written) if e["event"] == "request"] == ["/livez"]


@pytest.mark.parametrize("format", ["json", "text"])
def test_a_name_from_outside_forges_no_entry(written: io.StringIO, format: Any) -> None:
    configure(format, "info", written)
    logging.getLogger("tilewright.test").warning("worker %s is lost", HOSTILE, extra={"who": HOSTILE})
    text = written.getvalue()
    assert text.count("\n") == 1 and text[:-1].isprintable()
    if format == "json":
        assert json.loads(text)["who"] == HOSTILE


def test_the_lines_of_a_traceback_are_marked(written: io.StringIO) -> None:
    configure("text", "info", written)
    try:
        raise ValueError(HOSTILE)
    except ValueError:
        logging.getLogger("tilewright.test").exception("it failed")
    first, *rest = written.getvalue().splitlines()
    assert "it failed" in first and rest
    assert all(line.startswith("  | ") or line.startswith("Traceback") for line in rest), rest


def _lost_queue() -> ConnectorException:
    try:
        try:
            raise OSError("couldn't get a connection after 5.00 sec\nwhich is long")
        except OSError as cause:
            raise ConnectorException from cause
    except ConnectorException as error:
        return error


@pytest.mark.parametrize("logger", ["procrastinate.worker.searches", "asyncio"])
@pytest.mark.parametrize("format", ["json", "text"])
def test_what_the_queues_library_fails_on_is_a_line_without_a_trace(
    written: io.StringIO, logger: str, format: Any
) -> None:
    configure(format, "info", written)
    logging.getLogger(logger).error("its words", exc_info=_lost_queue(), extra={"worker": {"id": 7}})
    (line,) = written.getvalue().splitlines()
    assert "the queue of searches: couldn't get a connection after 5.00 sec" in line
    assert "warning" in line and "its words" not in line and "Traceback" not in line


@pytest.mark.parametrize(
    ("said", "logged"),
    [
        ("token tw_0123456789abcdefABCDEF-_ is odd", "token tw_******** is odd"),
        ("Authorization: Bearer abc.def", "Authorization: Bearer ********"),
        ("postgresql://me:secret@host/db", "postgresql://me:********@host/db"),
    ],
)
def test_secrets_are_not_logged(written: io.StringIO, said: str, logged: str) -> None:
    configure("json", "info", written)
    logging.getLogger("tilewright.test").info(said)
    assert _entries(written)[0]["event"] == logged


def test_an_id_in_a_message_is_a_field(written: io.StringIO) -> None:
    configure("json", "info", written)
    logging.getLogger("tilewright.test").info(
        "worker %s lost lease %s", "worker_0123456789ab", "lease_" + "0" * 12
    )
    (entry,) = _entries(written)
    assert (entry["worker"], entry["lease"]) == ("worker_0123456789ab", "lease_000000000000")


@pytest.mark.parametrize(
    ("traceparent", "trace"),
    [
        (f"00-{TRACE_ID}-b7ad6b7169203331-01", TRACE_ID),
        (f"01-{TRACE_ID}-b7ad6b7169203331-01-more", TRACE_ID),
        (f"00-{TRACE_ID}-b7ad6b7169203331-01-more", None),
        (f"ff-{TRACE_ID}-b7ad6b7169203331-01", None),
        (f"00-{'0' * 32}-b7ad6b7169203331-01", None),
        (f"00-{TRACE_ID}-{'0' * 16}-01", None),
        (f"00-{TRACE_ID.upper()}-b7ad6b7169203331-01", None),
        ("junk\n", None),
    ],
)
def test_trace_context_is_read_as_w3c_says(traceparent: str, trace: str | None) -> None:
    assert trace_id_of(traceparent) == trace


def test_an_answer_names_its_trace_and_its_request(api: Api) -> None:
    answer = api.http.post("/v1/jobs", json={"workload": MATMUL})
    version, trace, span, flags = answer.headers["traceresponse"].split("-")
    assert (version, trace, len(span), flags) == ("00", TRACE_ID, 16, "01")
    assert api.store.job(answer.json()["id"]).trace_id == TRACE_ID


# Of workers


def _leased(store: Store, api: Api, monkeypatch: pytest.MonkeyPatch) -> tuple[WorkerClient, Lease]:
    """A worker that speaks a protocol in which leases carry traces, and its lease of one trial."""
    monkeypatch.setattr(lease_calls, "_TRACED_PROTOCOL", 1)
    searched(store, 1, trace_id=TRACE_ID)
    client = Client(api.url, store.create_token("t", ["worker"])[1])
    worker = WorkerClient(client.transport)
    worker.register(WorkerHello(PROTOCOL, "w1", "5" * 32, HARDWARE, FACTS, {"codegen": "7"}))
    lease = worker.lease(1, 0.0)
    assert lease is not None
    return worker, lease


def test_the_trace_of_a_job_goes_to_the_worker_into_its_log_and_back_into_the_servers(
    store: Store, written: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = io.StringIO()
    with serving(store) as api:
        worker, lease = _leased(store, api, monkeypatch)
        (item,) = lease.items
        worker_logs.configure("json", "debug", said)
        configure("json", "debug", written)
        worker.start(lease.lease, item.item, item.attempt)
        worker.settle(lease.lease, [MeasureResult(item.item, item.attempt, seconds=1e-5, samples=(1e-5,))])
    mine = [(e["event"], e["trace_id"], e["lease"], e["trial"]) for e in _entries(said)]
    its = {e["route"]: e["trace_id"] for e in _entries(written) if e["event"] == "request"}
    assert mine == [
        ("starts", TRACE_ID, lease.lease, item.item),
        ("settles: 1e-05 s", TRACE_ID, lease.lease, item.item),
    ]
    assert its == {f"/v1/leases/{{lease_id}}:{verb}": TRACE_ID for verb in ("start", "settle")}


def test_a_worker_of_an_older_protocol_is_given_no_trace() -> None:
    items = [MeasureInput("t", 1, {}, {}, {}, traceparent=f"00-{TRACE_ID}-b7ad6b7169203331-01")]
    said = Lease("l", 1.0, 1.0, tuple(items)).to_json()
    newer = lease_calls.in_protocol({**said, "items": [dict(said["items"][0])]}, 2)
    older = lease_calls.in_protocol(said, 1)
    assert ("traceparent" in newer["items"][0], "traceparent" in older["items"][0]) == (True, False)


@pytest.mark.parametrize("format", ["json", "text"])
def test_what_a_worker_says_is_a_line(format: Any) -> None:
    said = io.StringIO()
    worker_logs.configure(format, "info", said)("attached as worker_1")
    if format == "text":
        assert said.getvalue() == "attached as worker_1\n"
    else:
        (entry,) = _entries(said)
        assert (entry["event"], entry["level"]) == ("attached as worker_1", "info")
