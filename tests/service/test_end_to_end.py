"""The main job with real processes: a server, a worker, a search, and kills in the middle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from service_harness import ENVIRONMENT

from tilewright import build, connect, topi
from tilewright.service.client import Client
from tilewright.service.views import JobView

LAYER = {"op": "dense", "m": 16, "n": 32, "k": 48, "bias": True, "activation": "relu"}
MAIN = "from tilewright.service.cli import main; main()"


@dataclass
class House:
    """The processes of one test, in a folder of its own."""

    folder: Path
    stack: ExitStack
    port: int = 0
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def db(self) -> str:
        return f"sqlite:///{self.folder}/house.db"

    @property
    def url(self) -> str:
        return (self.folder / "url").read_text().strip()

    def _start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        log = self.stack.enter_context((self.folder / f"{name}.log").open("ab"))
        process = subprocess.Popen(
            [sys.executable, "-c", MAIN, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={**ENVIRONMENT, **self.environment},
        )
        self.stack.callback(_end, process)
        return process

    def serve(self) -> subprocess.Popen[bytes]:
        ready = self.folder / "url"
        ready.unlink(missing_ok=True)
        arguments = ("--db", self.db, "--port", str(self.port), "--ready-file", str(ready))
        process = self._start("serve", "serve", *arguments)
        _until(ready.exists)
        self.port = int(self.url.rpartition(":")[2])
        return process

    def token(self) -> str:
        """A worker's, made once."""
        token_file = self.folder / "token"
        if not token_file.exists():
            made = subprocess.run(
                [sys.executable, "-c", MAIN, "token", "create", "--db", self.db, "--scope", "worker"],
                capture_output=True,
                check=True,
                env=ENVIRONMENT,
            )
            token_file.write_bytes(made.stdout)
        return token_file.read_text().strip()

    def work(self, name: str, *options: str) -> subprocess.Popen[bytes]:
        self.token()
        arguments = ("--url", self.url, "--token-file", str(self.folder / "token"), "--name", name)
        return self._start(name, "worker", "run", *arguments, *options)

    def logs(self) -> str:
        return "\n".join(f"== {log.name}\n{log.read_text()}" for log in sorted(self.folder.glob("*.log")))


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with ExitStack() as stack:
        yield House(
            tmp_path,
            stack,
            environment={
                "TILEWRIGHT_LEASE_SECONDS": "3",
                "TILEWRIGHT_LEASE_ITEMS": "4",
                "TILEWRIGHT_GOLDEN_EVERY": "0",
            },
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _until(holds: Callable[[], bool], seconds: float = 40.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.05)


def _finished(client: Client, job: str, house: House) -> JobView:
    view = client.job(job, wait=60)
    assert view.finished, f"{view}\n{house.logs()}"
    return view


def _settled(client: Client, job: str) -> dict[int, Any]:
    """The seconds of every trial that has an outcome, by number."""
    return {t.number: t.seconds for t in client.trials(job) if t.outcome not in ("pending", "started")}


def test_a_job_is_tuned_over_http_and_its_schedule_is_what_a_build_uses(house: House) -> None:
    house.serve()
    worker = house.work("w1")
    with Client(house.url) as client:
        job = _finished(client, client.submit(LAYER, trials=6).id, house)
    func = topi.create(LAYER)
    with connect(house.url) as schedules:
        module = build(func, target="llvm", schedules=schedules)
    rng = np.random.default_rng(0)
    x, w, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((16, 48), (48, 32), (32,)))
    y = np.empty((16, 32), np.float32)
    module(x, w, b, y)
    worker.terminate()
    assert (job.state, job.progress.done, module.schedule_source.kind) == ("completed", 6, "exact")
    np.testing.assert_allclose(y, np.maximum(x.astype(np.float64) @ w + b, 0.0), rtol=1e-4, atol=1e-4)
    assert worker.wait(15) == 0


@pytest.mark.slow
def test_a_worker_that_is_killed_in_mid_lease_costs_no_job(house: House) -> None:
    house.serve()
    first = house.work("w1")
    with Client(house.url) as client:
        job = client.submit(LAYER, trials=24).id
        _until(lambda: client.job(job).progress.done >= 3)
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
        before = _settled(client, job)
        house.work("w2")
        view = _finished(client, job, house)
        after = _settled(client, job)
    assert (view.state, view.progress.done) == ("completed", 24)
    # Only the winner has other seconds than at first: those of the final rounds.
    assert {n for n in before if after[n] != before[n]} <= {view.best and view.best.trial}


@pytest.mark.slow
def test_a_server_that_is_killed_in_mid_job_goes_on_from_the_stored_trials(house: House) -> None:
    server = house.serve()
    house.work("w1")
    with Client(house.url) as client:
        job = client.submit(LAYER, trials=24).id
        _until(lambda: client.job(job).progress.done >= 3)
        before = _settled(client, job)
        server.kill()
        server.wait()
    house.serve()
    with Client(house.url) as client:
        view = _finished(client, job, house)
        after = _settled(client, job)
        key = (view.workload.key, view.target.key, str(view.hardware))
        best = client.best(*key)
    assert (view.state, view.progress.done) == ("completed", 24)
    # Only the winner has other seconds than at first: those of the final rounds.
    assert {n for n in before if after[n] != before[n]} <= {view.best and view.best.trial}
    assert best is not None and view.best is not None
    assert best.seconds == view.progress.best_seconds == after[view.best.trial]


@pytest.mark.slow
def test_a_budget_that_was_measured_before_is_answered_from_history(house: House) -> None:
    house.serve()
    house.work("rig")
    with Client(house.url) as client:
        first = _finished(client, client.submit(LAYER, trials=10).id, house)
        again = _finished(client, client.submit(LAYER, trials=10).id, house)
        more = _finished(client, client.submit(LAYER, trials=14, seed=3).id, house)
        candidates = [t.candidate for job in (first, again, more) for t in client.trials(job.id)]
    assert (again.state, again.reason) == ("completed", "all 10 trials of the budget were measured before")
    assert (again.progress.done, again.progress.known, again.best) == (0, 10, first.best)
    assert (more.progress.done, more.progress.known) == (4, 10)
    assert (len(candidates), len(set(candidates))) == (14, 14)


@pytest.mark.slow
def test_trials_are_measured_by_others_across_restarts_of_the_server(house: House) -> None:
    from tilewright.compiler.target.hardware import detect

    server = house.serve()
    with Client(house.url) as client:
        job = client.submit(LAYER, trials=6, measure="outside", hardware=detect().key)
        (first,) = client.ask(job.id, holder="a person", wait=40)
    server.kill()
    server.wait()
    house.serve()
    with Client(house.url) as client:
        assert client.ask(job.id, holder="a person") == [first]
        assert client.tell(job.id, first.number, seconds=1e-3).seconds == 1e-3
        while trials := client.ask(job.id, 4, holder="a program", wait=20):
            for trial in trials:
                client.tell(job.id, trial.number, seconds=2e-3 + 1e-4 * trial.number)
            if client.job(job.id).progress.done == 6:
                break
        view = _finished(client, job.id, house)
        outcomes = [trial.outcome for trial in client.trials(job.id)]
    assert (view.state, view.progress.done, outcomes) == ("completed", 6, ["ok"] * 6), house.logs()
    assert view.best is not None
    assert (view.best.trial, view.best.seconds) == (first.number, 1e-3)
