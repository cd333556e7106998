"""What people do to workers over HTTP, by the client and by the command line."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from cli_commands import Command
from service_harness import (
    FACTS,
    HARDWARE,
    MATMUL,
    OTHER_FACTS,
    OTHER_HARDWARE,
    Api,
    attach,
    key_of,
    problem,
    searched,
    settle,
)

from tilewright.db import open_store
from tilewright.db.fleet_records import NewWorker, Worker
from tilewright.measure.messages import Drain, NameRetired, WorkerHello
from tilewright.service.cli import run
from tilewright.service.client import ApiError, Client
from tilewright.service.hardware_choice import Needs, waits_for
from tilewright.service.work_watch import WorkWatch
from tilewright.service.worker_client import WorkerClient


@pytest.fixture
def admin(api: Api) -> Iterator[Client]:
    with Client(api.url, api.store.create_token("ops", ["admin"])[1]) as client:
        yield client


@pytest.fixture
def tw(api: Api, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    """Runs a command on workers with an administrator's token: its exit code, stdout and stderr."""
    token = tmp_path / "token"
    token.write_text(api.store.create_token("ops", ["admin"])[1])

    def command(*arguments: str) -> tuple[int, str, str]:
        code = run([*arguments, "--url", api.url, "--token-file", str(token)])
        out, err = capsys.readouterr()
        return code, out, err

    return command


def _without_times(text: str) -> str:
    return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", "THEN", text)


def test_a_worker_is_paused_for_a_while_by_its_name(api: Api, admin: Client) -> None:
    attach(api.store)
    worker = admin.pause_worker("w1", seconds=1800, note="new fan").worker
    assert (worker.state, _without_times(worker.reason)) == (
        "paused",
        "paused for 30 min by token ops: new fan, until THEN",
    )
    assert worker.until is not None and worker.state_at is not None
    assert worker.until - worker.state_at == pytest.approx(1800)


def test_each_verb_wakes_the_dispatcher_and_answers_the_worker(api: Api, admin: Client) -> None:
    attach(api.store)
    states = [
        admin.drain_worker("w1").worker.state,
        admin.resume_worker("w1").worker.state,
        admin.quarantine_worker("w1", "odd times").worker.state,
        admin.release_worker("w1").worker.state,
        admin.remove_worker("w1").worker.state,
    ]
    assert states == ["draining", "online", "quarantined", "online", "retired"]
    assert api.dispatcher.woken == 5


def test_a_quarantine_says_what_is_best_known_now(api: Api, admin: Client) -> None:
    job = searched(api.store, 2)
    settle(api.store, [1e-5], attach(api.store, "bad"))
    settle(api.store, [2e-5], attach(api.store, "good"))
    change = admin.quarantine_worker("bad", "odd times")
    best = api.store.best(job.workload, job.target, HARDWARE)
    assert (change.replaced, change.lost, best and best.seconds) == (1, 0, 2e-5)


def test_a_quarantine_since_a_while_ago_keeps_what_is_older(api: Api, admin: Client) -> None:
    job = searched(api.store, 1)
    settle(api.store, [1e-5], attach(api.store))
    assert admin.quarantine_worker("w1", "odd times", since_seconds=0).replaced == 0
    assert api.store.best(job.workload, job.target, HARDWARE) is not None


@pytest.mark.parametrize("verb", ["pause", "resume", "drain", "quarantine", "release", "remove"])
def test_a_verb_needs_an_administrator(api: Api, verb: str) -> None:
    attach(api.store)
    body = {"note": "why"} if verb == "quarantine" else {}
    answer = api.http.post(f"/v1/workers/w1:{verb}", json=body, headers=api.token("worker"))
    assert (answer.status_code, answer.json()["code"]) == (403, "scope-missing")
    assert api.store.find_worker("w1").state == "registering"


def test_an_unknown_worker_gets_the_known_names(api: Api) -> None:
    attach(api.store, "rpi4-07")
    answer = api.http.post("/v1/workers/RPI4-7:pause", json={}, headers=api.token("admin"))
    assert answer.json() == problem(
        404,
        "not-found",
        "There is no such thing",
        "there is no worker 'RPI4-7'; did you mean 'rpi4-07'? workers: rpi4-07",
    )


def test_a_verb_that_does_not_fit_is_409_and_says_which_one_does(api: Api, admin: Client) -> None:
    attach(api.store)
    admin.quarantine_worker("w1", "odd times")
    with pytest.raises(ApiError) as caught:
        admin.pause_worker("w1")
    assert (caught.value.status, caught.value.detail) == (409, "worker w1 is quarantined: release it")


def test_a_worker_whose_name_holds_odd_characters_is_reached(api: Api, admin: Client) -> None:
    worker = attach(api.store, "rack 3/board:7 é")
    assert admin.worker(worker.id).name == "rack 3/board:7 é"
    attach(api.store, "board:7 é?")
    assert admin.pause_worker("board:7 é?").worker.state == "paused"


def test_an_idle_worker_that_drains_is_told_with_its_next_empty_lease(api: Api, admin: Client) -> None:
    hello = WorkerHello(1, "w1", "5" * 32, HARDWARE, FACTS, {"codegen": "7"})
    with Client(api.url, api.store.create_token("t", ["worker"])[1]) as opened:
        source = WorkerClient(opened.transport)
        source.register(hello)
        assert source.lease(1, 0.0) is None
        admin.drain_worker("w1", note="moving")
        with pytest.raises(Drain):
            source.lease(1, 0.0)
        source.leave()
    assert (admin.worker("w1").state, admin.worker("w1").reason) == (
        "offline",
        "drained by token ops: moving",
    )


@pytest.mark.parametrize("verb", ["pause", "drain", "quarantine", "remove"])
def test_a_worker_that_waits_for_work_is_let_go_once_the_verb_is_stored(
    api: Api, admin: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, verb: str
) -> None:
    let_go: list[tuple[str, str]] = []

    def seen(watch: WorkWatch, worker: str) -> None:
        with open_store(f"sqlite:///{tmp_path}/tilewright.db") as other:
            let_go.append((worker, other.worker(worker).state))

    monkeypatch.setattr(WorkWatch, "let_go", seen)
    worker = attach(api.store)
    change = getattr(admin, f"{verb}_worker")("w1", *["a test"] * (verb == "quarantine"))
    assert let_go == [(worker.id, change.worker.state)]


def test_a_removed_worker_that_still_runs_is_told_to_end(api: Api, admin: Client) -> None:
    hello = WorkerHello(1, "w1", "5" * 32, HARDWARE, FACTS, {"codegen": "7"})
    with Client(api.url, api.store.create_token("t", ["worker"])[1]) as opened:
        source = WorkerClient(opened.transport)
        source.register(hello)
        admin.remove_worker("w1")
        with pytest.raises(Drain):
            source.lease(1, 0.0)
        with pytest.raises(NameRetired, match=r"w1 is retired .* attach it under another name"):
            source.register(replace(hello, session="6" * 32))


def test_a_name_that_holds_a_slash_is_spoken_of_like_any_other(api: Api, tw: Command) -> None:
    attach(api.store, "lab/rig 1")
    assert tw("workers", "pause", "lab/rig 1") == (0, "lab/rig 1: paused (paused by token ops)\n", "")
    assert tw("workers", "show", "lab/rig 2") == (
        1, "", "tilewright: there is no worker 'lab%2Frig 2'; did you mean 'lab/rig 1'? workers: lab/rig 1\n"
    )  # fmt: skip


def test_a_worker_is_paused_by_the_command_line(api: Api, tw: Command) -> None:
    attach(api.store)
    code, out, err = tw("workers", "pause", "w1", "--for", "30m", "--note", "new fan")
    assert (code, _without_times(out), err) == (
        0,
        "w1: paused (paused for 30 min by token ops: new fan, until THEN)\n",
        "",
    )


def test_a_duration_that_is_none_is_wrong_usage(api: Api, tw: Command) -> None:
    attach(api.store)
    assert tw("workers", "pause", "w1", "--for", "long") == (
        64,
        "",
        "tilewright: --for must be a duration such as 20s, 500ms or 10m, got 'long'\n",
    )


@pytest.mark.parametrize("command", [("remove", "w1"), ("quarantine", "w1", "--note", "odd")])
def test_a_destructive_verb_asks_unless_it_is_told_yes(
    api: Api, tw: Command, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    attach(api.store)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    code, out, err = tw("workers", *command)
    assert (code, out, "Say --yes: there is no terminal to ask" in err) == (64, "", True)
    assert api.store.find_worker("w1").state == "registering"
    assert tw("workers", *command, "--yes")[0] == 0
    assert api.store.find_worker("w1").state in ("retired", "quarantined")


def test_a_removal_tells_what_became_of_the_schedules(api: Api, tw: Command) -> None:
    searched(api.store, 1)
    settle(api.store, [1e-5], attach(api.store))
    assert tw("workers", "remove", "w1", "--discard-results", "--note", "sold", "--yes") == (
        0,
        "w1: retired (removed by token ops: sold)\n",
        "best-known schedules that rested on w1: 0 have another trial now, 1 have none\n",
    )


def test_a_change_is_shown_as_json(api: Api, tw: Command) -> None:
    worker = attach(api.store)
    code, out, err = tw("workers", "drain", "w1", "--json")
    said = json.loads(out)
    assert (code, said["worker"]["id"], said["worker"]["state"], said["replaced"], err) == (
        0,
        worker.id,
        "draining",
        0,
        "",
    )


def test_an_unknown_worker_ends_a_command_with_1(api: Api, tw: Command) -> None:
    assert tw("workers", "show", "w1") == (1, "", "tilewright: there is no worker 'w1', nor any other\n")


def test_a_verb_that_does_not_fit_ends_a_command_with_4(api: Api, tw: Command) -> None:
    attach(api.store)
    tw("workers", "pause", "w1")
    assert tw("workers", "release", "w1") == (
        4,
        "",
        "tilewright: worker w1 is paused, not quarantined: resume it\n",
    )


def test_a_worker_is_shown_with_all_that_is_known_of_it(api: Api, tw: Command) -> None:
    job = searched(api.store, 3)
    worker = attach(api.store)
    settle(api.store, [1e-5, "run_error"], worker)
    lease = api.store.claim(worker.id, worker.session, worker.hardware, 1, 30.0)
    assert lease is not None
    api.store.start(lease.id, lease.items[0].trial, 1)
    code, out, _ = tw("workers", "show", "w1")
    rows = dict(re.split(r"  +", line, maxsplit=1) for line in out.splitlines()[1:])
    assert (code, rows["state"], rows["measures"], rows["results"], rows["protocol"]) == (
        0,
        "busy",
        f"{job.id}.2",
        "2, 1 of them failures",
        "1",
    )


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
    ],
)
def test_a_job_says_what_it_asked_for_and_what_there_is(
    needs: Needs, workers: list[Worker], reason: str | None
) -> None:
    assert waits_for(needs, workers) == reason


def test_a_job_that_names_labels_is_bound_to_the_only_hardware_that_has_them(api: Api) -> None:
    attach(api.store, "w1")
    api.store.put_hardware(OTHER_HARDWARE, json.dumps(OTHER_FACTS))
    labelled = NewWorker("w2", "s", key_of(OTHER_FACTS), 1, "{}", '{"board": "rpi4"}', "7")
    api.store.register_worker(labelled)
    body = {"workload": MATMUL, "labels": {"board": "rpi4"}}
    assert api.http.post("/v1/jobs", json=body).json()["hardware"] == OTHER_HARDWARE


def test_candidates_that_took_workers_with_them_are_listed_and_cleared(
    api: Api, admin: Client, tw: Command
) -> None:
    job = searched(api.store, 1)
    for session in ("a" * 32, "b" * 32, "c" * 32):
        worker = attach(api.store, session=session)
        lease = api.store.claim(worker.id, worker.session, worker.hardware, 1, 30.0)
        if lease is not None:
            api.store.start(lease.id, lease.items[0].trial, lease.items[0].attempt)
    (crash,) = admin.crashes()
    assert (crash.candidate, crash.hardware, crash.losses, crash.barred, crash.trial) == (
        "candidate0",
        HARDWARE,
        2,
        True,
        f"{job.id}.0",
    )
    assert tw("crashes", "clear", "candidate0") == (
        0,
        "",
        f"candidate0 may run again on hardware {HARDWARE[:12]}\n",
    )
    assert admin.crashes() == []
    assert tw("crashes", "clear", "candidate0")[0] == 1


def test_a_client_asks_for_workers_and_a_share(api: Api, capsys: pytest.CaptureFixture[str]) -> None:
    with Client(api.url) as client:
        job = client.submit(MATMUL, pool="lab-b", labels={"board": "rpi4"}, priority=1)
    assert run(["jobs", "show", job.id, "--url", api.url]) == 0
    assert "  workers   of pool lab-b, with board=rpi4, priority 1" in capsys.readouterr().out.splitlines()
