"""Builders and devices that only run, over HTTP: who may do what, and what each is told."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from service_harness import (
    FACTS,
    HARDWARE,
    MATMUL,
    TRACE_ID,
    Api,
    FakeParser,
    Switch,
    problem,
    searched,
    serving_at,
)

from tilewright.db import Store
from tilewright.db.fleet_records import NewWorker
from tilewright.measure.messages import MeasureResult, WorkerHello
from tilewright.measure.run_only.messages import BuildLease, RunLease
from tilewright.service.presenter import Presenter
from tilewright.service.settings import Settings

SESSION = "5" * 32
HELLO = WorkerHello(1, "board", SESSION, HARDWARE, FACTS, {"runner": "1"}, run_only=True).to_json()
NOBODY = "0" * 64


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True)
class Scene:
    """A server, a device that only runs, and a builder, each with its token."""

    api: Api
    device: dict[str, str]
    builder: dict[str, str]
    worker: str

    def build(self, verb: str = "", headers: dict[str, str] | None = None, **said: Any) -> Any:
        body = {"protocol": 1, "builder": "b", **said}
        return self.api.http.post(f"/v1/builds{verb}", json=body, headers=headers or self.builder)

    def claim(self, **more: Any) -> Any:
        return self.build(**{"codegen": "7", "max_items": 16, "wait_seconds": 0.0, **more})

    def put(self, data: bytes, name: str | None = None, headers: dict[str, str] | None = None) -> Any:
        kind = {"Content-Type": "application/octet-stream"}
        path = f"/v1/artifacts/{sha256(data) if name is None else name}"
        return self.api.http.put(path, content=data, headers={**(headers or self.builder), **kind})

    def settle(self, item: dict[str, Any], headers: dict[str, str] | None = None, **answer: Any) -> Any:
        said = {"build": item["build"], "attempt": item["attempt"], **answer}
        return self.build(f"/{item['build']}:settle", headers, answer=said)

    def make(self, item: dict[str, Any]) -> str:
        data = f"{item['kind']} {item['trace']}".encode()
        assert self.put(data).status_code == 204
        assert self.settle(item, artifact=sha256(data)).status_code == 204
        return sha256(data)

    def post(self, path: str, **said: Any) -> Any:
        body = {"protocol": 1, "worker": self.worker, "session": SESSION, **said}
        return self.api.http.post(path, json=body, headers=self.device)

    def lease(self) -> Any:
        return self.post("/v1/leases", max_items=8, wait_seconds=0.0)


@pytest.fixture
def scene(api: Api) -> Scene:
    device = api.token("worker")
    worker = api.http.post("/v1/workers", json=HELLO, headers=device).json()["worker"]
    return Scene(api, device, api.token("builder"), worker)


def test_a_device_that_only_runs_is_asked_for_no_checks_of_its_own(scene: Scene) -> None:
    hello = {**HELLO, "protocol": 2, "session": "6" * 32}
    answer = scene.api.http.post("/v1/workers", json=hello, headers=scene.device).json()
    assert answer == {
        "worker": scene.worker,
        "ttl_seconds": 30.0,
        "renew_seconds": 10.0,
        "wait_seconds": 20.0,
    }
    (worker,) = scene.api.store.workers()
    assert (worker.run_only, worker.state, worker.codegen_version) == (True, "registering", "7")


def test_a_device_is_given_digests_and_no_program_to_compile(scene: Scene) -> None:
    job = searched(scene.api.store, 1)
    assert scene.lease().status_code == 204
    data, program = scene.claim().json()["items"]
    made, code = scene.make(data), scene.make(program)
    lease = scene.lease().json()
    (item,) = RunLease.from_json(lease).items
    assert item.item == scene.api.store.trials(job.id)[0].id
    assert item.program.to_json() == {
        "sha256": code, "url": f"/v1/artifacts/{code}", "bytes": len("program {'steps': [0]}"),
    }  # fmt: skip
    assert item.data.sha256 == made
    assert {"workload", "target", "trace"}.isdisjoint(lease["items"][0])


def test_a_device_attaches_again_when_its_builders_have_another_code_generator(scene: Scene) -> None:
    old = NewWorker("board", SESSION[1:] + "6", HARDWARE, 1, "{}", "{}", "6", run_only=True)
    worker = scene.api.store.register_worker(old)
    said = {"protocol": 1, "worker": worker.id, "session": old.session, "max_items": 1, "wait_seconds": 0.0}
    answer = scene.api.http.post("/v1/leases", json=said, headers=scene.device)
    assert (answer.status_code, answer.json()["code"], answer.json()["detail"]) == (
        409,
        "attach-again",
        f"the code generator has version 7 now, and had 6 when worker {worker.id} attached",
    )


def test_its_result_is_stored_with_the_code_generator_of_its_builders(scene: Scene) -> None:
    job = searched(scene.api.store, 1)
    for item in scene.claim().json()["items"]:
        scene.make(item)
    lease = scene.lease().json()
    (item,) = lease["items"]
    said = MeasureResult(item["item"], item["attempt"], seconds=1e-5, samples=(1e-5, 2e-5), error=0.25)
    path = f"/v1/leases/{lease['lease']}"
    assert scene.post(f"{path}:start", item=item["item"], attempt=1).status_code == 200
    assert scene.post(f"{path}:settle", results=[said.to_json()]).status_code == 200
    (trial,) = scene.api.store.trials(job.id)
    assert (trial.outcome, trial.seconds, trial.error, trial.codegen_version) == ("ok", 1e-5, 0.25, "7")


def test_a_builder_is_given_what_to_make(scene: Scene) -> None:
    searched(scene.api.store, 1)
    lease = scene.claim().json()
    assert [(i["kind"], i["workload"], i["target"], i["trace"]) for i in lease["items"]] == [
        ("data", MATMUL, {}, {}),
        ("program", MATMUL, {"kind": "llvm", "mcpu": "skylake"}, {"steps": [0]}),
    ]
    assert BuildLease.from_json(lease).most_bytes == Settings().max_artifact_bytes
    assert scene.claim().status_code == 204


def test_a_failure_settles_the_trial(scene: Scene) -> None:
    job = searched(scene.api.store, 1)
    data, program = scene.claim().json()["items"]
    scene.make(data)
    failure = {"kind": "build_error", "message": "no code", "elapsed": 0.5, "last_words": "why"}
    assert scene.settle(program, failure=failure).status_code == 204
    (trial,) = scene.api.store.trials(job.id)
    assert (trial.outcome, trial.failure_message) == ("build_error", "no code")
    assert trial.failure_detail == '{"elapsed": 0.5, "last_words": "why"}'
    assert scene.lease().status_code == 204


@pytest.mark.parametrize("scope", ["worker", "jobs:write", "schedules:read"])
def test_only_a_builder_may_build(scene: Scene, scope: str) -> None:
    searched(scene.api.store, 1)
    data, _ = scene.claim().json()["items"]
    other = scene.api.token(scope)
    refused = [
        scene.claim(headers=other),
        scene.put(b"x", headers=other),
        scene.settle(data, other, artifact=NOBODY),
        scene.build(":renew", other, builds=[]),
        scene.build(":release", other),
    ]
    assert {answer.status_code for answer in refused} == {403}
    assert refused[0].json()["detail"] == (
        f"this request needs a token of scope builder or admin; token 'test' has {scope}"
    )
    assert scene.api.store.build_counts().artifact_bytes == 0


def test_a_builder_may_not_measure(scene: Scene) -> None:
    searched(scene.api.store, 1)
    identity = {"protocol": 1, "worker": scene.worker, "session": SESSION}
    for path, said in (
        ("/v1/workers", HELLO),
        ("/v1/leases", {**identity, "max_items": 1, "wait_seconds": 0}),
        ("/v1/leases/lease_1:settle", {**identity, "results": []}),
        (f"/v1/workers/{scene.worker}:leave", identity),
    ):
        assert scene.api.http.post(path, json=said, headers=scene.builder).status_code == 403


def test_nobody_fetches_artifacts_without_a_token(scene: Scene) -> None:
    scene.put(b"program")
    path = f"/v1/artifacts/{sha256(b'program')}"
    assert scene.api.http.get(path).status_code == 401
    assert scene.api.http.get(path, headers=scene.api.token("jobs:write")).status_code == 403


def test_an_artifact_is_fetched_once_and_never_changes(scene: Scene) -> None:
    scene.put(b"program")
    path, tag = f"/v1/artifacts/{sha256(b'program')}", f'"{sha256(b"program")}"'
    got = scene.api.http.get(path, headers=scene.device)
    assert (got.content, got.headers["etag"], got.headers["content-type"]) == (
        b"program", tag, "application/octet-stream",
    )  # fmt: skip
    assert got.headers["cache-control"] == "private, max-age=31536000, immutable"
    again = scene.api.http.get(path, headers={**scene.device, "If-None-Match": tag})
    assert (again.status_code, again.content) == (304, b"")


def test_bytes_of_another_digest_are_refused(scene: Scene) -> None:
    answer = scene.put(b"program", name=NOBODY)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")
    assert sha256(b"program") in answer.json()["detail"]
    assert scene.api.http.get(f"/v1/artifacts/{NOBODY}", headers=scene.device).status_code == 404


@pytest.mark.parametrize(
    "name",
    ["..%2F..%2Fetc%2Fpasswd", "..", "A" * 64, "0" * 63, "0" * 65, "0" * 63 + "%00", f"{NOBODY}%2F..", "'--"],
)
def test_a_digest_is_no_path(scene: Scene, name: str) -> None:
    for answer in (
        scene.api.http.get(f"/v1/artifacts/{name}", headers=scene.device),
        scene.put(b"program", name=name),
    ):
        assert answer.status_code in (404, 405, 415, 422)
        assert answer.headers["content-type"] == "application/problem+json"
    assert scene.api.store.build_counts().artifact_bytes == 0


def test_an_artifact_is_bytes_and_says_so(scene: Scene) -> None:
    path = f"/v1/artifacts/{sha256(b'{}')}"
    answer = scene.api.http.put(path, json={}, headers=scene.builder)
    assert (answer.status_code, answer.json()["detail"]) == (
        415, "the body's Content-Type is 'application/json'; it must be application/octet-stream",
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["application/octet-stream", "application/json", "text/plain"])
def test_another_method_is_refused_whatever_it_brings(scene: Scene, kind: str) -> None:
    path, headers = f"/v1/artifacts/{NOBODY}", {**scene.builder, "Content-Type": kind}
    answer = scene.api.http.post(path, content=b"\x89PNG", headers=headers)
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, PUT")


@pytest.fixture
def small(store: Store, shared_server: tuple[str, Switch]) -> Iterator[Api]:
    settings = Settings(max_artifact_bytes=2000, artifact_store_bytes=3000, max_body_bytes=1024)
    with serving_at(*shared_server, store, settings) as running:
        yield running


def test_artifacts_have_limits_of_their_own(small: Api) -> None:
    scene = Scene(small, {}, small.token("builder"), "")
    assert scene.put(b"x" * 2001).json() == problem(
        413, "body-too-large", "The request's body is too large", "a body may have at most 2000 bytes"
    )
    assert scene.put(b"x" * 2000).status_code == 204
    full = scene.put(b"y" * 2000)
    assert (full.status_code, "artifact_store_bytes" in full.json()["detail"]) == (507, True)
    assert small.store.build_counts().artifact_bytes == 2000


def test_a_builder_with_another_code_generator_is_told_which_is_wanted(scene: Scene) -> None:
    searched(scene.api.store, 1)
    answer = scene.claim(codegen="6")
    assert (answer.status_code, answer.json()["code"]) == (426, "protocol-refused")
    assert answer.json()["detail"] == (
        "this server's code generator has version 7 and the builder's 6: install the server's version of "
        "tilewright on the builder's machine"
    )


def test_a_builder_settles_only_what_it_holds(scene: Scene) -> None:
    searched(scene.api.store, 1)
    data, program = scene.claim().json()["items"]
    scene.put(b"mine")
    said = {"artifact": sha256(b"mine")}
    forged = scene.build(
        f"/{data['build']}:settle", builder="other", answer={**said, "build": data["build"], "attempt": 1}
    )
    stale = scene.settle({**data, "attempt": 2}, **said)
    unknown = scene.settle({"build": "build_0", "attempt": 1}, **said)
    elsewhere = scene.build(
        f"/{data['build']}:settle", answer={**said, "build": program["build"], "attempt": 1}
    )
    codes = [(a.status_code, a.json()["code"]) for a in (forged, stale, unknown, elsewhere)]
    assert codes == [
        (409, "lease-lost"), (409, "lease-lost"), (404, "not-found"), (422, "invalid-request"),
    ]  # fmt: skip


def test_what_is_released_is_given_to_the_next(scene: Scene) -> None:
    searched(scene.api.store, 1)
    first = scene.claim().json()["items"]
    held = [{"build": item["build"], "attempt": item["attempt"]} for item in first]
    assert scene.build(":renew", builds=held).status_code == 204
    assert scene.build(":release").status_code == 204
    second = scene.build(builder="other", codegen="7", max_items=16, wait_seconds=0.0).json()["items"]
    assert [(i["build"], i["attempt"]) for i in second] == [(i["build"], 2) for i in first]


@pytest.mark.parametrize(
    ("said", "pointer"),
    [
        ({"codegen": "7", "max_items": 0, "wait_seconds": 0}, "/max_items"),
        ({"codegen": "7", "max_items": 17, "wait_seconds": 0}, "/max_items"),
        ({"codegen": "7", "max_items": 1, "wait_seconds": -1}, "/wait_seconds"),
        ({"codegen": 7, "max_items": 1, "wait_seconds": 0}, "/codegen"),
        ({"max_items": 1, "wait_seconds": 0}, "/codegen"),
        ({"codegen": "7", "max_items": 1, "wait_seconds": 0, "more": 1}, "/more"),
    ],
)
def test_a_wrong_claim_names_its_place(scene: Scene, said: dict[str, Any], pointer: str) -> None:
    answer = scene.build(**said)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, pointer)


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"artifact": NOBODY, "failure": {"kind": "build_error", "message": ""}},
        {"artifact": "../x"},
        {"artifact": NOBODY, "build_seconds": -1},
        {"failure": {"kind": "no_such_kind", "message": ""}},
    ],
)
def test_a_wrong_answer_is_refused(scene: Scene, answer: dict[str, Any]) -> None:
    searched(scene.api.store, 1)
    data, _ = scene.claim().json()["items"]
    assert scene.settle(data, **answer).status_code == 422


def test_an_artifact_that_was_not_put_is_refused(scene: Scene) -> None:
    searched(scene.api.store, 1)
    data, _ = scene.claim().json()["items"]
    answer = scene.settle(data, artifact=NOBODY)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")


def stalled(scene: Scene, job: str) -> str | None:
    presenter = Presenter(scene.api.store, FakeParser(), 0.02)
    time.sleep(0.05)
    shown = presenter.job(scene.api.store.job(job)).stalled
    return None if shown is None else shown.partition(", ")[2]


def test_a_job_for_which_nobody_builds_says_that_it_waits_for_a_builder(scene: Scene) -> None:
    job = searched(scene.api.store, 1).id
    assert stalled(scene, job) == (
        "waits for a builder: nobody makes the program of trial 0; attach one by `tilewright builder run`"
    )
    data, program = scene.claim().json()["items"]
    assert stalled(scene, job) == "waiting for a worker to take trial 0"
    scene.make(data), scene.make(program)
    assert stalled(scene, job) == "waiting for a worker to take trial 0"


def test_a_device_that_only_runs_is_given_the_trace_of_the_job(scene: Scene) -> None:
    searched(scene.api.store, 1, trace_id=TRACE_ID)
    for item in scene.claim().json()["items"]:
        scene.make(item)
    said = {"protocol": 2, "worker": scene.worker, "session": SESSION, "max_items": 8, "wait_seconds": 0.0}
    lease = scene.api.http.post("/v1/leases", json=said, headers=scene.device).json()
    (item,) = RunLease.from_json(lease).items
    assert item.traceparent is not None and item.traceparent.split("-")[1] == TRACE_ID
