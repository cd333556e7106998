"""What a server logs: entries with ids, without secrets, that nobody forges."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from service_harness import MATMUL, TRACE_ID, Api, serving, stored_job

from tilewright.db import Store
from tilewright.service.logs import configure
from tilewright.service.tracing import trace_id_of

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
