"""A device that becomes slower in the middle of a job, and devices of one host, with a real server."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from test_end_to_end import LAYER, House, _finished, _until

from tilewright.measure.checkup import Checkup
from tilewright.measure.golden import golden_items
from tilewright.measure.messages import Lease, MeasureInput, MeasureResult
from tilewright.measure.patience import Patience, Persistence
from tilewright.measure.probe import probe
from tilewright.measure.processors import allowed
from tilewright.measure.worker import Worker
from tilewright.service.client import Client
from tilewright.service.transport import Transport
from tilewright.service.worker_client import WorkerClient


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with ExitStack() as stack:
        yield House(
            tmp_path,
            stack,
            environment={
                "TILEWRIGHT_LEASE_ITEMS": "4",
                "TILEWRIGHT_LEASE_WAIT": "0.2",
                "TILEWRIGHT_GOLDEN_PROCESSES": "0",
            },
        )


@dataclass
class SlowsDown:
    """A runner that measures nothing: a candidate takes what its trace says, and everything 1.3 times as long
    after so many of them."""

    after: int
    measured: int = 0

    def measure(self, item: MeasureInput, ahead: MeasureInput | None = None) -> MeasureResult:
        slow = 1.0 if self.measured < self.after else 1.3
        self.measured += 1
        said = json.dumps([item.workload, item.trace], sort_keys=True).encode()
        seconds = slow * (1.0 + hashlib.sha256(said).digest()[0] / 256) * 1e-4
        return MeasureResult(
            item.item, item.attempt, seconds, (seconds,) * 3, error=0.5, baseline=(slow * 1e-6, slow * 1e-6)
        )

    def cancel(self, item: str | None = None) -> None:
        return


class Dismissable(WorkerClient):
    """Tells its worker to end, in the worker's own thread, once it is dismissed."""

    worker: Worker

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        self.dismissed = threading.Event()

    def lease(self, max_items: int, wait_seconds: float) -> Lease | None:
        if self.dismissed.is_set():
            self.worker.interrupt()
        return super().lease(max_items, wait_seconds)


@contextmanager
def working(house: House, runner: SlowsDown) -> Iterator[None]:
    """A worker of this process, with that runner."""
    secret = house.token()
    with Client(house.url, secret) as client:
        checkup = Checkup(golden_items, runner.measure, lambda: 0.0)
        persistence = Persistence(Patience(), lambda line: None)
        source = Dismissable(client.transport)
        worker = source.worker = Worker(source, runner, probe("slow"), 4, persistence, checkup)
        thread = threading.Thread(target=worker.run)
        thread.start()
        try:
            yield
        finally:
            source.dismissed.set()
            thread.join()


@pytest.mark.slow
def test_a_device_that_slows_down_within_a_job_is_told_and_the_winner_is_measured_again(house: House) -> None:
    house.serve()
    with Client(house.url) as client, working(house, SlowsDown(after=6)):
        job = _finished(client, client.submit(LAYER, trials=12).id, house)
        events = {event.kind: event.data for event in client.events(job.id)}
        trials = list(client.trials(job.id))
    (drift,) = job.drift
    assert (drift.name, drift.drift, job.warnings) == ("slow", pytest.approx(0.3), [drift.message])
    assert drift.message == (
        "worker slow was 30% slower at its last trial than at first: times of before and after do not "
        "compare; the final rounds measure the winner again"
    )
    assert events["drift"]["name"] == "slow"
    assert job.best is not None
    winner = trials[job.best.trial]
    assert events["crowned"]["number"] == winner.number
    again = {contender["number"] for contender in events["crowned"]["contenders"]}
    assert winner.number in again
    # What a trial's time is worth is known beside it: the ratio to the baseline of that moment.
    once = [trial for trial in trials if trial.number not in again and trial.seconds]
    assert len(once) >= 8
    assert all(trial.baseline_ratio == pytest.approx(trial.seconds / trial.baseline[0]) for trial in once)


@pytest.mark.slow
def test_two_workers_of_one_host_have_devices_of_their_own(house: House) -> None:
    house.serve()
    one = min(allowed())
    first = house.work("a", "--device", f"cpu:{one}")
    with Client(house.url, house.token()) as client:
        _until(lambda: [worker.name for worker in client.workers()] == ["a"])
        second = house.work("b", "--device", f"cpu:{one}")
        assert second.wait(40) == 8
        patient = house.work("c", "--device", f"cpu:{one}", "--wait-for-device")
        _until(lambda: "; waiting for it" in house.logs())
        assert (
            f"processor {one} of this machine is in use by the worker 'a', process {first.pid}"
            in house.logs()
        )
        os.killpg(first.pid, signal.SIGKILL)
        _until(lambda: "c" in [worker.name for worker in client.workers()])
        (worker,) = [worker for worker in client.workers() if worker.name == "c"]
        assert (worker.facts["device"], worker.facts["usable_cores"]) == (f"cpu:{one}", 1)
    patient.terminate()
    assert patient.wait(20) == 0


@pytest.mark.slow
def test_a_worker_that_waits_for_its_device_ends_on_sigterm(house: House) -> None:
    house.serve()
    one = min(allowed())
    house.work("a", "--device", f"cpu:{one}")
    with Client(house.url, house.token()) as client:
        _until(lambda: bool(client.workers()))
    waiting = house.work("b", "--device", f"cpu:{one}", "--wait-for-device")
    _until(lambda: "; waiting for it" in house.logs())
    waiting.terminate()
    assert waiting.wait(20) == 0


@pytest.mark.slow
def test_a_real_worker_shows_its_golden_kernels_at_attach(house: House) -> None:
    house.environment["TILEWRIGHT_GOLDEN_PROCESSES"] = "2"
    house.serve()
    house.work("a")
    headers = {"Authorization": f"Bearer {house.token()}"}
    with httpx.Client(base_url=house.url, headers=headers, trust_env=False) as http:

        def checks() -> list[Any]:
            found: list[Any] = []
            for worker in http.get("/v1/workers").json()["workers"]:
                found += http.get(f"/v1/workers/{worker['id']}/health").json()["checks"]
            return found

        _until(lambda: bool(checks()))
        (check,) = checks()
    assert (check["occasion"], [part["part"] for part in check["parts"]]) == ("attach", ["compute", "memory"])
