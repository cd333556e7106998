from __future__ import annotations

import json
import threading
import time

import pytest
from service_harness import Api, problem, stored_job

Event = tuple[str, str, object]


def _read(api: Api, job: str, headers: dict[str, str] | None = None, query: str = "") -> list[Event]:
    """The (id, event, data) of a stream that the server ends."""
    with api.http.stream("GET", f"/v1/jobs/{job}/events{query}", headers=headers or {}) as answer:
        text = "".join(answer.iter_text())
    blocks = [dict(line.split(": ", 1) for line in b.splitlines()) for b in text.split("\n\n") if b]
    return [(block["id"], block["event"], json.loads(block["data"])) for block in blocks]


def _finished_job(api: Api) -> str:
    job = stored_job(api.store)
    api.store.add_event(job.id, "best", '{"seconds": 1e-05}')
    api.store.add_event(job.id, "progress", '{"done": 1}')
    api.store.cancel_job(job.id)
    return job.id


def test_the_stream_of_a_finished_job_is_its_history_and_ends(api: Api) -> None:
    assert _read(api, _finished_job(api)) == [
        ("1", "state", {"state": "queued", "reason": ""}),
        ("2", "best", {"seconds": 1e-5}),
        ("3", "progress", {"done": 1}),
        ("4", "state", {"state": "cancelled", "reason": "cancelled"}),
    ]


def test_a_stream_goes_on_after_the_last_event_id(api: Api) -> None:
    events = _read(api, _finished_job(api), {"Last-Event-ID": "2"})
    assert [event[0] for event in events] == ["3", "4"]


def test_a_client_that_cannot_set_headers_says_after(api: Api) -> None:
    assert [event[0] for event in _read(api, _finished_job(api), query="?after=3")] == ["4"]


def test_a_stream_shows_what_happens_and_ends_with_the_job(api: Api) -> None:
    job = stored_job(api.store)

    def happen() -> None:
        time.sleep(0.3)
        api.store.add_event(job.id, "best", '{"seconds": 1e-05}')
        time.sleep(0.3)
        api.store.cancel_job(job.id)

    thread = threading.Thread(target=happen)
    thread.start()
    events = _read(api, job.id)
    thread.join()
    assert [event[1] for event in events] == ["state", "best", "state"]


def test_a_stream_says_that_the_server_stops_and_goes_on_where_it_was(api: Api) -> None:
    job = stored_job(api.store)
    threading.Timer(0.3, api.stopping.set).start()
    with api.http.stream("GET", f"/v1/jobs/{job.id}/events") as answer:
        *_, last = "".join(answer.iter_text()).split("\n\n")[:-1]
    api.stopping.clear()
    api.store.cancel_job(job.id)
    after = _read(api, job.id, {"Last-Event-ID": "1"})
    assert sorted(last.splitlines()) == [
        'data: {"reason": "the server is stopping"}',
        "event: closing",
        "retry: 1000",
    ]
    assert [(seq, kind) for seq, kind, _ in after] == [("2", "state")]


def test_the_events_of_an_unknown_job_are_404(api: Api) -> None:
    assert api.http.get("/v1/jobs/job_000000000000/events").json() == problem(
        404, "not-found", "There is no such thing", "there is no job 'job_000000000000'"
    )


@pytest.mark.parametrize("wrong", ["-1", "x", "1e3", "99999999999999999"])
def test_a_last_event_id_that_is_none_is_refused(api: Api, wrong: str) -> None:
    job = stored_job(api.store)
    detail = f"Last-Event-ID must be the id of an event, got {wrong!r}"
    assert api.http.get(f"/v1/jobs/{job.id}/events", headers={"Last-Event-ID": wrong}).json() == problem(
        422,
        "invalid-request",
        "The request does not say what this route needs",
        detail,
        {"parameter": "Last-Event-ID", "detail": detail},
    )


def test_an_event_number_that_no_json_reader_holds_is_refused(api: Api) -> None:
    job = stored_job(api.store)
    answer = api.http.get(f"/v1/jobs/{job.id}/events", params={"after": "99999999999999999999999"})
    detail = "query parameter should be less than or equal to 9007199254740991"
    said = f'{detail}, got "99999999999999999999999"'
    assert answer.json() == problem(
        422,
        "invalid-request",
        "The request does not say what this route needs",
        f"after: {said}",
        {"parameter": "after", "detail": said},
    )


def test_a_last_event_id_that_stands_twice_is_refused(api: Api) -> None:
    twice = [("Last-Event-ID", "1"), ("Last-Event-ID", "2")]
    answer = api.http.get(f"/v1/jobs/{_finished_job(api)}/events", headers=twice)
    detail = "the header Last-Event-ID stands 2 times in the request; send it once"
    assert (answer.status_code, answer.json()["detail"]) == (422, detail)
