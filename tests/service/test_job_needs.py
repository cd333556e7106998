"""Which workers a job asks for: its pool, its labels, its share, and what it waits for."""

from __future__ import annotations

import json

import pytest
from service_harness import (
    HARDWARE,
    MATMUL,
    OTHER_FACTS,
    OTHER_HARDWARE,
    Api,
    attach,
    key_of,
)

from tilewright.db.fleet_records import NewWorker, Worker
from tilewright.service.cli import run
from tilewright.service.client import Client
from tilewright.service.hardware_choice import Needs, says_the_same, waits_for


def test_a_job_goes_to_the_pool_of_its_token(api: Api) -> None:
    _, value = api.store.create_token("lab", ["jobs:write"], "lab-b")
    headers = {"Authorization": f"Bearer {value}"}
    job = api.http.post("/v1/jobs", json={"workload": MATMUL}, headers=headers).json()
    refused = api.http.post("/v1/jobs", json={"workload": MATMUL, "pool": "lab-a"}, headers=headers).json()
    detail = "this token is bound to pool 'lab-b', got 'lab-a'"
    assert (job["pool"], refused["errors"]) == ("lab-b", [{"pointer": "/pool", "detail": detail}])


def test_the_trials_of_a_job_count_to_the_share_of_its_token(api: Api) -> None:
    token, value = api.store.create_token("lab", ["jobs:write"])
    headers = {"Authorization": f"Bearer {value}"}
    body = {"workload": MATMUL, "priority": -2, "labels": {"board": "rpi4"}}
    job = api.http.post("/v1/jobs", json=body, headers=headers).json()
    stored = api.store.job(job["id"])
    assert (stored.account, stored.priority, stored.labels) == (token.id, -2, '{"board": "rpi4"}')


@pytest.mark.parametrize(
    ("field", "value", "pointer"),
    [
        ("priority", 5, "/priority"),
        ("priority", 0.5, "/priority"),
        ("labels", {"board": 4}, "/labels/board"),
        ("labels", {"a=b": "c"}, "/labels/a=b/[key]"),
        ("pool", "", "/pool"),
    ],
)
def test_a_need_that_is_none_is_refused_at_its_place(
    api: Api, field: str, value: object, pointer: str
) -> None:
    (error,) = api.http.post("/v1/jobs", json={"workload": MATMUL, field: value}).json()["errors"]
    assert error["pointer"] == pointer


def _worker(name: str, *, state: str = "online", reason: str = "", **more: str | None) -> Worker:
    values = {"hardware": "h1", "labels": "{}", "pool": None, **more}
    return Worker(
        f"worker_{name}", name, "s", values["hardware"] or "", 1, "{}", values["labels"] or "{}", "7",
        values["pool"], state, reason, None, 0.0, 0.0,
    )  # fmt: skip


RPI4 = _worker("w1", labels='{"board": "rpi4"}', pool="lab-a")


@pytest.mark.parametrize(
    ("needs", "workers", "reason"),
    [
        (Needs("h1", "lab-a", frozenset({"board=rpi4"})), [RPI4], None),
        (
            Needs("h2"),
            [RPI4],
            "no worker for hardware h2; attached are h1 (w1)",
        ),
        (
            Needs(labels=frozenset({"board=rpi5"})),
            [RPI4],
            "no worker with label board=rpi5; did you mean board=rpi4? labels known: board=rpi4",
        ),
        (
            Needs(labels=frozenset({"board=RPI4"})),
            [RPI4],
            "no worker with label board=RPI4; did you mean board=rpi4? labels known: board=rpi4",
        ),
        (Needs(labels=frozenset({"x=y"})), [_worker("w1")], "no worker with label x=y; no labels are known"),
        (
            Needs(labels=frozenset({"a=1", "b=2"})),
            [_worker("w1", labels='{"a": "1"}'), _worker("w2", labels='{"b": "2"}')],
            "no worker with all the labels a=1, b=2: w1 has a=1; w2 has b=2",
        ),
        (
            Needs(pool="LAB-A"),
            [RPI4],
            "no worker in pool LAB-A; did you mean lab-a? pools known: lab-a",
        ),
        (
            Needs("h1"),
            [
                _worker("w1", state="paused", reason="paused for 30 min by token ops"),
                _worker("w2", state="offline"),
            ],
            "no worker for hardware h1 (w1 is paused: paused for 30 min by token ops, w2 is offline)",
        ),
        (
            Needs(labels=frozenset({"board=rpi4"})),
            [_worker("w1", state="quarantined", reason="odd times", labels='{"board": "rpi4"}')],
            "no worker attached (w1 is quarantined: odd times)",
        ),
        (Needs(), [], "no worker attached"),
        (
            Needs("h2"),
            [_worker(f"w{n}") for n in range(400)],
            "no worker for hardware h2; attached are h1 (w0, w1, w2 and 397 more)",
        ),
        (
            Needs(),
            [_worker(f"w{n}", hardware=f"h{n:02}") for n in range(10)],
            "workers of 10 kinds are attached and the job names none: h00 (w0), h01 (w1), h02 (w2), "
            "h03 (w3), h04 (w4), h05 (w5), h06 (w6), h07 (w7) and 2 more",
        ),
        (
            Needs("h1"),
            [
                *(_worker(f"w{n}", state="offline", reason="it has left") for n in range(400)),
                _worker("z", state="paused", reason="paused by token ops"),
            ],
            "no worker for hardware h1 (z is paused: paused by token ops, w0 is offline: it has left, "
            "w1 is offline: it has left and 398 more)",
        ),
        (
            Needs("h1"),
            [_worker("w1", state="paused", reason="long " * 1000)],
            f"no worker for hardware h1 (w1 is paused: {'long ' * 59}long…)",
        ),
        (
            Needs(labels=frozenset({"a=1", "b=2"})),
            [
                *(_worker(f"w{n}", labels='{"a": "1"}', state="offline") for n in range(3)),
                _worker("z", labels='{"b": "2"}'),
            ],
            "no worker with all the labels a=1, b=2: z has b=2; w0 has a=1; w1 has a=1 and 1 more",
        ),
        (
            Needs(labels=frozenset({"x=y"})),
            [_worker(f"w{n}", labels=f'{{"host": "{n:02}"}}') for n in range(30)],
            "no worker with label x=y; labels known: host=00, host=01, host=02, host=03, host=04, host=05, "
            "host=06, host=07 and 22 more",
        ),
    ],
)
def test_a_job_says_what_it_asked_for_and_what_there_is(
    needs: Needs, workers: list[Worker], reason: str | None
) -> None:
    assert waits_for(needs, workers) == reason


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("attached are h1 (a, b, c)", "attached are h1 (a, b, c and 2 more)", True),
        ("attached are h1 (a, b, c and 9 more)", "attached are h1 (a, b, c and 10 more)", True),
        ("attached are h1 (a, b, c and 9 more)", "attached are h1 (a, b, d and 9 more)", False),
        ("attached are h1 (a, b)", "attached are h1 (a, b, c)", False),
        (
            "workers of 9 kinds are attached: a and 1 more",
            "workers of 10 kinds are attached: a and 2 more",
            True,
        ),
        ("no worker in pool 9", "no worker in pool 10", False),
    ],
)
def test_reasons_that_differ_in_what_they_count_say_the_same(one: str, other: str, same: bool) -> None:
    assert says_the_same(one, other) is same


def test_a_page_of_jobs_that_wait_stays_small_with_a_hundred_workers(api: Api) -> None:
    for number in range(100):
        worker = attach(api.store, f"{number:03}" + "n" * 97)
        api.store.leave(worker.id, worker.session)
    body = {"workload": MATMUL, "hardware": HARDWARE}
    for _ in range(4):
        api.http.post("/v1/jobs", json=body).raise_for_status()
    page = api.http.get("/v1/jobs")
    reasons = {job["reason"] for job in page.json()["jobs"]}
    names = ", ".join(f"{number:03}{'n' * 97} is offline: it has ended" for number in range(3))
    assert reasons == {f"no worker for hardware {HARDWARE} ({names} and 97 more)"}


def test_a_job_that_names_labels_is_bound_to_the_only_hardware_that_has_them(api: Api) -> None:
    attach(api.store, "w1")
    api.store.put_hardware(OTHER_HARDWARE, json.dumps(OTHER_FACTS))
    labelled = NewWorker("w2", "s", key_of(OTHER_FACTS), 1, "{}", '{"board": "rpi4"}', "7")
    api.store.register_worker(labelled)
    body = {"workload": MATMUL, "labels": {"board": "rpi4"}}
    assert api.http.post("/v1/jobs", json=body).json()["hardware"] == OTHER_HARDWARE


def test_a_client_asks_for_workers_and_a_share(api: Api, capsys: pytest.CaptureFixture[str]) -> None:
    with Client(api.url) as client:
        job = client.submit(MATMUL, pool="lab-b", labels={"board": "rpi4"}, priority=1)
    assert run(["jobs", "show", job.id, "--url", api.url]) == 0
    assert "  workers   of pool lab-b, with board=rpi4, priority 1" in capsys.readouterr().out.splitlines()
