"""Group F: cases whose feature is another one here, so that the fault cannot arise, or would elsewhere."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from own_processes import own_children
from service_harness import FACTS, HARDWARE, Api, searched

from tilewright import topi
from tilewright.compiler.ir import to_json
from tilewright.compiler.target import Target
from tilewright.db import Store
from tilewright.measure.messages import PROTOCOL, Limits, MeasureInput, WorkerHello
from tilewright.measure.runner import Runner
from tilewright.service.client import Client
from tilewright.service.transport import Transport
from tilewright.service.worker_client import WorkerClient

HELLO = WorkerHello(PROTOCOL, "behind-nat", "5" * 32, HARDWARE, FACTS, {"codegen": "7"})


@pytest.fixture
def tunnel(api: Api) -> Iterator[str]:
    """The server's URL at another port, as through a tunnel: a process that forwards each connection."""
    host, port = api.url.removeprefix("http://").split(":")
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def forward() -> None:
            while True:
                try:
                    near, _ = listener.accept()
                except OSError:
                    return
                far = socket.create_connection((host, int(port)))
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=_pump, args=(one, other), daemon=True).start()

        threading.Thread(target=forward, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


def _pump(one: socket.socket, other: socket.socket) -> None:
    with one, contextlib.suppress(OSError):
        while data := one.recv(1 << 16):
            other.sendall(data)
        other.shutdown(socket.SHUT_WR)


def test_f5_a_worker_behind_a_tunnel_works_and_nobody_is_told_an_address(
    api: Api, store: Store, tunnel: str
) -> None:
    """Workers only ask: nobody connects to one, so that there is no address to get wrong."""
    searched(store, 2)
    _, secret = store.create_token("t", ["worker"])
    with Transport(tunnel, secret, insecure_http=False, timeout=10) as transport:
        source = WorkerClient(transport)
        source.register(HELLO)
        lease = source.lease(1, 0.0)
    assert lease is not None
    listed = api.http.get("/v1/workers", headers={"Authorization": f"Bearer {secret}"}).text
    assert [word for word in ("127.0.0.1", "localhost", "address", "host:") if word in listed] == []


@pytest.mark.parametrize("size", [1, (64 << 10) - 1, 64 << 10, (64 << 10) + 1, 4 << 20])
def test_f12_a_body_of_any_size_up_to_the_limit_arrives_whole(api: Api, size: int) -> None:
    """No array travels: the largest thing that does is a program, in a body of at most 4 MiB."""
    body = b'{"workload": {"op": "%s"}}'
    body = body % (b"x" * max(0, size - len(body) + 2)) if size > len(body) else b"1" * size
    assert len(body) == size
    answer = api.http.post("/v1/jobs", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    if size > 1:
        assert answer.json()["errors"][0]["pointer"] == "/workload/op"


def test_f12_a_body_beyond_the_limit_is_refused_by_name_and_the_session_goes_on(api: Api) -> None:
    body = json.dumps({"workload": {"op": "x" * (4 << 20)}})
    answer = api.http.post("/v1/jobs", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["detail"]) == (413, "a body may have at most 4194304 bytes")
    assert api.http.get("/v1/jobs").status_code == 200


def _copy() -> MeasureInput:
    """A kernel that gives its argument back."""
    func = topi.create({"op": "transpose", "shape": [16, 16], "axes": [0, 1], "dtype": "float32"})
    return MeasureInput(
        "identity", 1, to_json(func), Target.parse("llvm").to_json(), {"version": 1, "steps": []}, 0, Limits()
    )


def test_f13_a_kernel_that_gives_its_argument_back_leaves_nothing_behind() -> None:
    """Arguments and results live and die in the process of one candidate; no handle crosses the wire."""
    with Runner() as runner:
        item = _copy()
        for n in range(5):
            assert runner.measure(replace(item, item=f"warm{n}")).failure is None
        (server,) = own_children()
        before = server.memory_info().rss
        for n in range(40):
            assert runner.measure(replace(item, item=f"trial{n}")).failure is None
        assert server.memory_info().rss - before < 8 << 20


def test_f14_what_is_closed_may_be_closed_again_and_says_so_when_it_is_used(api: Api, tmp_path: Path) -> None:
    client = Client(api.url)
    assert list(client.jobs()) == []
    client.close()
    client.close()
    with pytest.raises(RuntimeError, match="closed"):
        list(client.jobs())


def test_f14_a_runner_is_closed_in_any_order_and_may_be_used_again() -> None:
    runner = Runner("misbehaving:behaves")
    runner.close()
    item = MeasureInput("trial_1", 1, {}, {}, {"behaviour": "succeed"})
    assert runner.measure(item).seconds == 0.5
    runner.close()
    runner.close()
    assert own_children(recursive=True) == []
