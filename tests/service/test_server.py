from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psutil
import pytest
from service_harness import ENVIRONMENT, MATMUL, attach, searched, stored_job

from tilewright.db import Store, open_store
from tilewright.service.client import Client
from tilewright.service.server import ServeError, bind, url_of

PROGRAM = Path(__file__).parent / "server_program.py"


@dataclass(frozen=True)
class Running:
    """A server process and what it wrote."""

    process: subprocess.Popen[bytes]
    url: str
    ready_file: Path
    starts: Path

    def searches(self) -> list[tuple[str, int, int]]:
        """The (job, epoch, pid) of each search that was started."""
        if not self.starts.exists():
            return []
        rows = [line.split() for line in self.starts.read_text().splitlines()]
        return [(job, int(epoch), int(pid)) for job, epoch, pid in rows]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path}/served.db") as opened:
        yield opened


@contextmanager
def _running(folder: Path, drain: float = 0.0) -> Iterator[Running]:
    ready_file, starts = folder / "url", folder / "starts"
    process = subprocess.Popen(
        [sys.executable, PROGRAM, f"sqlite:///{folder}/served.db", ready_file, starts],
        env={**ENVIRONMENT, "DRAIN": str(drain)},
    )
    try:
        _until(ready_file.exists)
        yield Running(process, ready_file.read_text().strip(), ready_file, starts)
    finally:
        process.kill()
        process.wait()


def _until(holds: Callable[[], bool], seconds: float = 15.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.02)


def _is_gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_sigterm_ends_streams_long_polls_and_searches_and_then_the_server_with_0(
    tmp_path: Path, store: Store
) -> None:
    attach(store)
    job = stored_job(store)
    ended: list[str] = []
    with _running(tmp_path) as server:
        http = httpx.Client(base_url=server.url, timeout=60, trust_env=False)
        open_requests = threading.Barrier(3)

        def follow() -> None:
            with http.stream("GET", f"/v1/jobs/{job.id}/events") as answer:
                open_requests.wait()
                answer.read()
            ended.append("stream")

        def wait() -> None:
            open_requests.wait()
            http.get(f"/v1/jobs/{job.id}?wait=50s")
            ended.append("long poll")

        threads = [threading.Thread(target=target) for target in (follow, wait)]
        for thread in threads:
            thread.start()
        open_requests.wait(10)
        _until(lambda: bool(server.searches()))
        time.sleep(0.5)  # the long poll has been sent by then
        begun = time.monotonic()
        server.process.terminate()
        code = server.process.wait(10)
        for thread in threads:
            thread.join(5)
        http.close()
        (search,) = server.searches()
        assert (code, sorted(ended), time.monotonic() - begun < 6) == (0, ["long poll", "stream"], True)
        assert (_is_gone(search[2]), server.ready_file.exists(), store.job(job.id).state) == (
            True,
            False,
            "running",
        )


@contextmanager
def _half_a_request(url: str) -> Iterator[socket.socket]:
    """A connection whose request is begun, and not ended by its client."""
    address = urlsplit(url)
    with socket.create_connection((address.hostname, address.port)) as connection:
        head = "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        connection.sendall(f"{head}Content-Length: 10\r\n\r\n".encode())
        yield connection


def test_a_second_sigterm_ends_the_server_at_once_whatever_is_under_way(tmp_path: Path, store: Store) -> None:
    with _running(tmp_path) as server, _half_a_request(server.url):
        time.sleep(0.5)  # the request has been read by then
        server.process.terminate()
        with pytest.raises(subprocess.TimeoutExpired):
            server.process.wait(1.5)
        server.process.terminate()
        assert server.process.wait(6) == 0


def test_a_server_that_ends_is_not_ready_while_it_still_takes_connections(
    tmp_path: Path, store: Store
) -> None:
    with _running(tmp_path, drain=3.0) as server:
        server.process.terminate()
        _until(lambda: httpx.get(f"{server.url}/readyz", trust_env=False).status_code == 503)
        said = httpx.get(f"{server.url}/readyz", trust_env=False).json()["detail"]
        live = httpx.get(f"{server.url}/livez", trust_env=False).status_code
        assert (said, live, server.process.wait(15)) == ("the server is stopping", 200, 0)


def test_sigkill_takes_the_searches_along_and_a_new_server_goes_on(tmp_path: Path, store: Store) -> None:
    attach(store)
    job = searched(store, 3)
    with _running(tmp_path) as server:
        _until(lambda: len(server.searches()) == 1)
        server.process.kill()
        server.process.wait()
        _until(lambda: _is_gone(server.searches()[0][2]))
        server.ready_file.unlink()
    with _running(tmp_path) as server:
        _until(lambda: len(server.searches()) == 2)
        with Client(server.url) as client:
            view = client.job(job.id)
    assert [search[:2] for search in server.searches()] == [(job.id, 2), (job.id, 3)]
    assert (view.state, len(store.trials(job.id))) == ("running", 3)


def test_a_second_server_of_a_database_ends_and_names_the_first(tmp_path: Path, store: Store) -> None:
    with _running(tmp_path) as server:
        second = subprocess.run(
            [sys.executable, PROGRAM, f"sqlite:///{tmp_path}/served.db", tmp_path / "url2", tmp_path / "s2"],
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            timeout=30,
        )
    assert (second.returncode, second.stderr.splitlines()[-1]) == (
        1,
        f"tilewright.service.api_server.ServeError: {tmp_path}/served.db is served already, by process "
        f"{server.process.pid} at {server.url}: stop that server, or name another database",
    )


def test_a_server_answers_what_is_no_http_by_a_problem(tmp_path: Path, store: Store) -> None:
    with _running(tmp_path) as server:
        address = urlsplit(server.url)
        with socket.create_connection((address.hostname, address.port), timeout=10) as connection:
            connection.sendall(b"garbage\r\n\r\n")
            answer = connection.makefile("rb").read()
    assert (answer[:12], b'"code": "not-http"' in answer) == (b"HTTP/1.1 400", True)


def test_a_server_whose_database_was_deleted_is_not_ready_and_takes_no_job(
    tmp_path: Path, store: Store
) -> None:
    with _running(tmp_path) as server:
        (tmp_path / "served.db").unlink()
        http = httpx.Client(base_url=server.url, trust_env=False)
        answers = [http.get("/readyz"), http.post("/v1/jobs", json={"workload": MATMUL})]
        http.close()
    detail = (
        f"{tmp_path}/served.db: the database that was opened is gone: it is not there any more (No such "
        "file or directory). Put the file back, or restart on another database"
    )
    assert [(answer.status_code, answer.json()["detail"]) for answer in answers] == [(503, detail)] * 2


def test_a_port_that_is_taken_is_named() -> None:
    with bind("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(ServeError) as refused:
            bind("127.0.0.1", port)
    assert str(refused.value) == f"cannot listen at 127.0.0.1:{port}: Address already in use"


def test_a_host_that_is_not_there_is_named() -> None:
    with pytest.raises(ServeError, match=r"cannot listen at no\.such\.host\.invalid:0: "):
        bind("no.such.host.invalid", 0)


@pytest.mark.parametrize(
    ("host", "url"), [("0.0.0.0", "http://127.0.0.1:"), ("127.0.0.1", "http://127.0.0.1:")]
)
def test_the_announced_url_can_be_reached_from_this_machine(host: str, url: str) -> None:
    with bind(host, 0) as listener:
        assert url_of(host, listener) == f"{url}{listener.getsockname()[1]}"
