"""What the tests of the service stand on: a small parser in the compiler's place, a server in a thread."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import uvicorn

import tilewright
from tilewright.db import Store
from tilewright.db.fleet_records import NewWorker, Worker
from tilewright.db.records import Job, NewJob, NewTrial, Settlement
from tilewright.service.app import create_app
from tilewright.service.http_protocol import ProblemProtocol
from tilewright.service.server import bind, url_of
from tilewright.service.settings import Settings
from tilewright.service.workloads import CheckedRecord, Near, SpecError, TargetSpec, Workload, check_knobs

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(tilewright.__file__).parents[1])}
"""What a process of these tests runs in: it finds tilewright where this one did, installed or not."""

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
TRACED = {"traceparent": f"00-{TRACE_ID}-b7ad6b7169203331-01"}
HEX = "0" * 64
INVALID = ("invalid-request", "The request does not say what this route needs")
MATMUL = {"op": "matmul", "m": 64, "n": 64, "k": 64, "dtype": "float32"}
MATMUL_FLOPS = 2.0 * 64**3
FACTS = {"mcpu": "skylake", "model_name": "A processor"}
OTHER_FACTS = {"mcpu": "znver3"}


def key_of(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


HARDWARE = key_of(FACTS)
OTHER_HARDWARE = key_of(OTHER_FACTS)
HOST_FACTS = {"mcpu": "host-of-the-server"}


class FakeParser:
    """Knows one operator, matmul, and one kind of target, llvm, whose mcpu comes from the hardware."""

    def workload(self, spec: Mapping[str, Any]) -> Workload:
        if spec.get("op") == "crash":
            raise RuntimeError("the secret word is swordfish")
        if spec.get("op") != "matmul":
            raise SpecError(f"unknown operator {spec.get('op')!r}; operators are matmul", "/op")
        for name in ("m", "n", "k"):
            if not isinstance(spec.get(name), int):
                raise SpecError("must be an integer", f"/{name}")
        program = json.dumps(dict(spec), sort_keys=True)
        key = key_of({k: v for k, v in spec.items() if k != "name"})
        return Workload(key, "matmul", program, "def matmul(): ...", self.flops(program))

    def suggestion(self, workload: Workload, said: Mapping[str, Any]) -> None:
        if "steps" not in said:
            check_knobs(said)
        elif said["steps"] != []:
            raise SpecError("unknown step", "/steps/0")

    def target(self, spec: str | Mapping[str, Any], facts: Mapping[str, Any] | None) -> TargetSpec:
        given = {"kind": spec} if isinstance(spec, str) else dict(spec)
        if given.get("kind") != "llvm":
            raise SpecError(f"unknown target kind {given.get('kind')!r}; known kinds: llvm", "/kind")
        description = {"mcpu": (facts or HOST_FACTS)["mcpu"], **given}
        return TargetSpec(key_of(description), json.dumps(description, sort_keys=True))

    def hardware_key(self, facts: Mapping[str, Any]) -> str:
        return key_of(dict(facts))

    def flops(self, program: str) -> float | None:
        spec = json.loads(program)
        return 2.0 * spec["m"] * spec["n"] * spec["k"]

    def least_seconds(self, program: str, target: str, facts: str) -> float:
        return (self.flops(program) or 0.0) / 1e12

    def why_not(self, program: str, target: str, trace: str) -> str | None:
        return "unknown step 9" if 9 in json.loads(trace)["steps"] else None

    def nearest(self, source: Any, program: str, target: str, hardware: str, facts: Any, allow: Any) -> Any:
        """What is known for the workload on any other hardware, if that is allowed."""
        for one in source.nearby(key_of({**json.loads(program)}), "", 8):
            if "same_family" in allow and one.schedule.hardware != hardware:
                return Near("same_family", "a relative", one.schedule.trace, one.schedule.trial), ""
        return None, "nothing is near"

    def default_trace(self, program: str, target: str) -> str:
        return '{"steps": []}'

    def record(self, program: Any, target: Any, facts: Any, trace: Any, codegen: str) -> CheckedRecord:
        workload, of = self.workload(program), self.target(target, None)
        texts = json.dumps(trace), key_of([workload.key, of.key, trace, codegen])
        named = workload.key, workload.name, workload.program, workload.script, "s"
        return CheckedRecord(*named, of.key, of.description, key_of(facts), *texts)

    def operators(self) -> Mapping[str, Mapping[str, Any]]:
        return {"matmul": {"description": "C = A @ B", "type": "object"}}

    def codegen_version(self) -> str:
        return "7"


@dataclass
class FakeDispatcher:
    """Runs nothing, and remembers how often it was woken."""

    woken: int = 0
    trouble: str | None = None

    def wake(self) -> None:
        self.woken += 1

    def problem(self) -> str | None:
        return self.trouble


@dataclass(frozen=True)
class Api:
    """A server in a thread, its store, and a client without a token."""

    url: str
    store: Store
    dispatcher: FakeDispatcher
    stopping: threading.Event
    http: httpx.Client = field(repr=False)

    def token(self, *scopes: Any) -> dict[str, str]:
        """The header of a new token."""
        return {"Authorization": f"Bearer {self.store.create_token('test', scopes)[1]}"}


class Switch:
    """An ASGI application that passes requests on to another, which can be changed: tests share a server."""

    def __init__(self) -> None:
        self.app: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.app(scope, receive, send)


@contextlib.contextmanager
def serving(store: Store, settings: Settings | None = None) -> Iterator[Api]:
    """The application on a free port, on a server of its own."""
    switch = Switch()
    with served(switch) as url, serving_at(url, switch, store, settings) as api:
        yield api


@contextlib.contextmanager
def serving_at(url: str, switch: Switch, store: Store, settings: Settings | None = None) -> Iterator[Api]:
    """The application behind a switch."""
    dispatcher, stopping = FakeDispatcher(), threading.Event()
    switch.app = create_app(store, settings or Settings(), dispatcher, FakeParser(), stopping)
    with httpx.Client(base_url=url, timeout=10, trust_env=False, headers=TRACED) as http:
        try:
            yield Api(url, store, dispatcher, stopping, http)
        finally:
            stopping.set()


@contextlib.contextmanager
def served(app: Any) -> Iterator[str]:
    """Any ASGI application in a thread; its URL."""
    listener = bind("127.0.0.1", 0)
    config = uvicorn.Config(
        app,
        http=ProblemProtocol,
        log_level="critical",
        lifespan="off",
        ws="none",
        proxy_headers=False,
        timeout_graceful_shutdown=2,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield url_of("127.0.0.1", listener)
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def attach(
    store: Store, name: str = "w1", facts: Mapping[str, Any] = FACTS, session: str = "s" * 32
) -> Worker:
    """A worker in the store."""
    hardware = key_of(dict(facts))
    store.put_hardware(hardware, json.dumps(dict(facts)))
    return store.register_worker(NewWorker(name, session, hardware, 1, '{"codegen": "7"}', "{}", "7"))


def stored_job(store: Store, hardware: str | None = HARDWARE, **more: Any) -> Job:
    """A job of the 64-cubed matmul, queued."""
    parser = FakeParser()
    workload, target = parser.workload(MATMUL), parser.target("llvm", FACTS)
    store.put_workload(workload.key, workload.name, workload.program, workload.script)
    store.put_target(target.key, target.description)
    if hardware is not None and hardware not in {h.key for h in store.hardwares()}:
        store.put_hardware(hardware, "{}")
    values: dict[str, Any] = {
        "trials": 8,
        "seconds": None,
        "seed": 0,
        "strategy": "guided",
        "worker_wait": 600.0,
        "origin": "http",
        "spec": json.dumps({"workload": MATMUL, "target": "llvm"}),
        **more,
    }
    return store.create_job(NewJob(workload=workload.key, target=target.key, hardware=hardware, **values))


def trials(count: int, first: int = 0) -> list[NewTrial]:
    return [
        NewTrial(n, 0, f"candidate{n}", "tiled", json.dumps({"steps": [n]}), b"", 1, 0)
        for n in range(first, first + count)
    ]


def searched(store: Store, count: int, **more: Any) -> Job:
    """A running job with `count` pending trials."""
    job = stored_job(store, **more)
    store.add_trials(job.id, store.begin_search(job.id), trials(count))
    return store.job(job.id)


def settle(store: Store, results: Sequence[float | str], worker: Worker) -> None:
    """Lease as many trials as there are results, and settle them: seconds, or a failure kind."""
    lease = store.claim(worker.id, worker.session, worker.hardware, len(results), 30.0)
    assert lease is not None
    settlements = []
    for item, result in zip(lease.items, results, strict=True):
        store.start(lease.id, item.trial, item.attempt)
        if isinstance(result, str):
            said: dict[str, Any] = {"failure_kind": result, "failure_message": "it failed"}
        else:
            said = {"seconds": result, "samples": (result, result), "error": 0.5}
        settlements.append(Settlement(item.trial, item.attempt, **said))
    store.settle(lease.id, settlements)


def without_times(text: str) -> str:
    return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", "THEN", text)


def problem(status: int, code: str, title: str, detail: str, *errors: dict[str, str]) -> dict[str, Any]:
    """The whole problem document of a request that carried TRACED."""
    document: dict[str, Any] = {
        "type": f"urn:tilewright:problem:{code}",
        "title": title,
        "status": status,
        "code": code,
        "detail": detail,
        "trace_id": TRACE_ID,
    }
    if errors:
        document["errors"] = list(errors)
    return document
