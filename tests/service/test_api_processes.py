"""Several processes that serve the API at one address, as a user starts them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
import pytest
from service_harness import ENVIRONMENT, MATMUL
from shepherding import until

pytestmark = pytest.mark.slow
MAIN = "from tilewright.service.cli import main; main()"
LONG = 60.0


def _serves(process: psutil.Process) -> bool:
    try:
        return "tilewright.service.api_child" in process.cmdline()
    except psutil.NoSuchProcess:  # a zombie, too
        return False


@dataclass(frozen=True)
class Served:
    process: subprocess.Popen[bytes]
    url: str

    def children(self) -> list[int]:
        """Process ids of those that serve the API."""
        children = psutil.Process(self.process.pid).children()
        return sorted(c.pid for c in children if _serves(c))

    def answers(self) -> bool:
        """A connection of its own, which any of the processes may take."""
        try:
            return httpx.get(f"{self.url}/readyz", timeout=10, trust_env=False).status_code == 200
        except httpx.HTTPError:
            return False


def begun(folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [
            *(sys.executable, "-c", MAIN, "serve", "--db", f"sqlite:///{folder}/many.db"),
            *("--processes", "2", "--port", "0", "--ready-file", str(folder / "url")),
        ],
        env=ENVIRONMENT,
    )


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    ready = tmp_path / "url"
    process = begun(tmp_path)
    try:
        until(lambda: ready.exists() or process.poll() is not None, LONG)
        yield Served(process, ready.read_text().strip())
    finally:
        process.terminate()
        process.wait(30)


def test_what_one_process_is_told_the_others_know(served: Served) -> None:
    assert len(served.children()) == 2
    for _ in range(8):
        with httpx.Client(base_url=served.url, timeout=10, trust_env=False) as http:
            job = http.post("/v1/jobs", json={"workload": MATMUL, "budget": {"trials": 4}}).json()["id"]
        for _ in range(4):
            assert httpx.get(f"{served.url}/v1/jobs/{job}", timeout=10, trust_env=False).status_code == 200


def test_a_process_that_is_killed_is_replaced_and_the_others_serve_meanwhile(served: Served) -> None:
    before = served.children()
    os.kill(before[0], signal.SIGKILL)
    assert served.answers()
    until(lambda: len(served.children()) == 2 and served.children() != before, LONG)
    assert before[1] in served.children()
    until(served.answers, LONG)


def test_a_process_that_is_killed_as_it_starts_is_begun_again(tmp_path: Path) -> None:
    process = begun(tmp_path)
    starting = Served(process, "")
    try:
        until(lambda: starting.children() != [], LONG)
        hit = starting.children()[0]
        os.kill(hit, signal.SIGKILL)
        until(lambda: (tmp_path / "url").exists() or process.poll() is not None, LONG)
        assert process.poll() is None
        assert len(starting.children()) == 2
        assert hit not in starting.children()
    finally:
        process.terminate()
        assert process.wait(30) == 0


def test_a_long_poll_hears_of_what_another_process_was_told(served: Served) -> None:
    with httpx.Client(base_url=served.url, timeout=30, trust_env=False) as http:
        job = http.post("/v1/jobs", json={"workload": MATMUL, "budget": {"trials": 4}}).json()["id"]
    waiting = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import httpx, sys; print(httpx.get(sys.argv[1], timeout=60, trust_env=False).json()['state'])",
            f"{served.url}/v1/jobs/{job}?wait=50s",
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    for _ in range(4):  # of two processes, one at least is another than the one that waits
        httpx.post(f"{served.url}/v1/jobs/{job}:cancel", timeout=10, trust_env=False)
    assert waiting.communicate(timeout=LONG)[0] == "cancelled\n"


def test_sigterm_ends_all_of_them_with_0(served: Served) -> None:
    children = served.children()
    served.process.terminate()
    assert served.process.wait(30) == 0
    assert [pid for pid in children if psutil.pid_exists(pid)] == []
    assert not served.answers()


def test_none_outlives_a_killed_parent(served: Served) -> None:
    children = served.children()
    served.process.kill()
    served.process.wait()
    until(lambda: not any(psutil.pid_exists(pid) for pid in children))
