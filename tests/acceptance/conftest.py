"""A server and workers as real processes, as a user starts them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from tilewright.service.client import Client
from tilewright.service.views import JobView

TILEWRIGHT = [sys.executable, "-c", "from tilewright.service.cli import main; main()"]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def wait_until(what: str, holds: Callable[[], bool], seconds: float = 60) -> None:
    """Waits for a condition; fails naming it when it does not come."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            pytest.fail(f"after {seconds:g} s still waiting for: {what}")
        time.sleep(0.05)


_MARK = "FLEET_OF_TESTS"
"""Environment variable by which the processes of a fleet are found."""

UNCHECKED = {"TILEWRIGHT_GOLDEN_EVERY": "0"}
"""A machine that runs tests is not steady, and none of these is about that."""


@dataclass
class Fleet:
    """One database, and the processes around it, with `settings` as environment variables say them."""

    folder: Path
    port: int = 0
    settings: dict[str, str] = field(default_factory=dict)
    children: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def db(self) -> str:
        return f"sqlite:///{self.folder}/fleet.db"

    def start(self, log: str, *arguments: str, **more: str) -> subprocess.Popen[bytes]:
        with (self.folder / log).open("ab") as sink:
            child = subprocess.Popen(
                [*TILEWRIGHT, *arguments], stdin=subprocess.DEVNULL, stdout=sink, stderr=sink,
                start_new_session=True,
                env={**ENVIRONMENT, **UNCHECKED, _MARK: str(self.folder), **self.settings, **more},
            )  # fmt: skip
        self.children.append(child)
        return child

    def log(self, name: str) -> str:
        return (self.folder / name).read_text()

    def serve(self) -> subprocess.Popen[bytes]:
        """A server; after the first time on the same port, so that workers find it again."""
        ready = self.folder / "url"
        ready.unlink(missing_ok=True)
        options = ["--db", self.db, "--port", str(self.port), "--ready-file", str(ready)]
        child = self.start("server.log", "serve", *options)

        def answered() -> bool:
            assert child.poll() is None, f"the server ended:\n{self.log('server.log')}"
            return ready.exists() and ready.read_text().strip() != ""

        wait_until("the server's URL", answered)
        self.port = int(ready.read_text().strip().rsplit(":", 1)[1])
        return child

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def token(self, *scopes: str) -> Path:
        path = self.folder / "token"
        options = [x for s in scopes for x in ("--scope", s)]
        made = subprocess.run(
            [*TILEWRIGHT, "token", "create", "--db", self.db, *options], check=True, capture_output=True
        )
        path.write_bytes(made.stdout)
        return path

    def worker(self, name: str = "w") -> subprocess.Popen[bytes]:
        options = ["--url", self.url, "--token-file", str(self.token("worker")), "--name", name]
        locks = {"TILEWRIGHT_LOCK_FOLDER": str(self.folder / f"locks-{name}")}  # several share this machine
        return self.start(f"worker-{name}.log", "worker", "run", *options, **locks)

    def client(self) -> Client:
        return Client(self.url)

    def finished(self, job: str, seconds: float = 120) -> JobView:
        with self.client() as client:
            view = client.job(job, wait=seconds)
        assert view.finished, f"{job} is {view.state}; server:\n{self.log('server.log')[-3000:]}"
        return view

    def kill(self, child: subprocess.Popen[bytes]) -> None:
        """SIGKILL of that one process, and of nothing else."""
        child.send_signal(signal.SIGKILL)
        child.wait()

    def descendants(self) -> list[psutil.Process]:
        """Every process that this fleet's processes started and that still runs."""
        found = []
        for p in psutil.process_iter(["cmdline", "environ"]):
            environ = p.info["environ"] or {}
            if environ.get(_MARK) == str(self.folder) or str(self.folder) in " ".join(
                p.info["cmdline"] or []
            ):
                found.append(p)
        return found


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    made = Fleet(tmp_path)
    try:
        yield made
    finally:
        late: list[str] = []
        # Workers before their server: one that drains still has a result to deliver.
        for child in reversed(made.children):
            if child.poll() is None:
                child.terminate()
            try:
                child.wait(15)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
                late.append(" ".join(child.args[3:5]))  # type: ignore[arg-type, index]
        assert not late, f"still there 15 s after SIGTERM: {late}"


@pytest.fixture
def until() -> Callable[..., None]:
    return wait_until
