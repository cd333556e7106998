from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from fake_source import wait_for

Start = Callable[..., subprocess.Popen[str]]
SCRIPT = Path(__file__).with_name("worker_process.py")


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a worker process with a program and the behaviours of its items; gone when the test is."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, str(SCRIPT), *arguments]
        started.append(
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def read_until(worker: subprocess.Popen[str], line: str) -> None:
    assert worker.stdout is not None
    while (got := worker.stdout.readline().rstrip("\n")) != line:
        assert got, f"the worker ended before it printed {line!r}"


def rest_of(worker: subprocess.Popen[str]) -> list[str]:
    out, _ = worker.communicate(timeout=20)
    return out.splitlines()


def family(worker: subprocess.Popen[str]) -> list[psutil.Process]:
    return psutil.Process(worker.pid).children(recursive=True)


def test_killing_the_worker_in_mid_trial_leaves_no_process(start: Start) -> None:
    worker = start("misbehaving:behaves", "ignore_signals_and_hang")
    read_until(worker, "start ignore_signals_and_hang")
    assert wait_for(lambda: len(family(worker)) >= 2)
    processes = family(worker)
    worker.kill()
    assert psutil.wait_procs(processes, timeout=5.0)[1] == []


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a stopped process takes no signal but SIGKILL")
def test_killing_the_worker_leaves_no_process_that_stands_still(start: Start) -> None:
    worker = start("misbehaving:behaves", "ignore_signals_and_hang")
    read_until(worker, "start ignore_signals_and_hang")
    assert wait_for(lambda: len(family(worker)) >= 2)
    processes = family(worker)
    for process in processes:
        process.suspend()
    worker.kill()
    assert psutil.wait_procs(processes, timeout=5.0)[1] == []


def test_killing_the_worker_while_a_reference_is_computed_leaves_no_process(start: Start) -> None:
    worker = start("misbehaving:HangsInTheServer", "succeed")
    read_until(worker, "start succeed")
    processes = family(worker)
    assert len(processes) == 1
    worker.kill()
    assert psutil.wait_procs(processes, timeout=5.0)[1] == []


def test_sigterm_lets_the_current_item_end_and_gives_back_the_rest(start: Start) -> None:
    worker = start("misbehaving:behaves", "sleep", "succeed")
    read_until(worker, "start sleep")
    worker.terminate()
    assert (rest_of(worker), worker.returncode) == (
        ["sleep succeeded", "settle sleep", "release lease_1", "leave"],
        0,
    )


def test_a_second_sigterm_gives_back_the_current_item_too(start: Start) -> None:
    worker = start("misbehaving:behaves", "hang_in_run", "succeed")
    read_until(worker, "start hang_in_run")
    assert wait_for(lambda: len(family(worker)) >= 2)
    worker.terminate()
    threading.Timer(0.2, worker.send_signal, [signal.SIGTERM]).start()
    assert (rest_of(worker), worker.returncode) == (["release lease_1", "leave"], 0)


def test_ctrl_c_twice_ends_a_worker_as_sigterm_does(start: Start) -> None:
    worker = start("misbehaving:behaves", "hang_in_run")
    read_until(worker, "start hang_in_run")
    worker.send_signal(signal.SIGINT)
    threading.Timer(0.2, worker.send_signal, [signal.SIGINT]).start()
    assert (rest_of(worker), worker.returncode) == (["release lease_1", "leave"], 0)


def test_an_idle_worker_ends_at_once_on_sigterm(start: Start) -> None:
    worker = start("misbehaving:behaves")
    read_until(worker, "lease")
    worker.terminate()
    assert (rest_of(worker), worker.returncode) == (["leave"], 0)


def test_a_service_manager_that_signals_every_process_disturbs_no_trial(start: Start) -> None:
    worker = start("misbehaving:behaves", "sleep", "succeed")
    read_until(worker, "start sleep")
    assert wait_for(lambda: len(family(worker)) >= 2)
    for process in family(worker):
        process.terminate()
    worker.terminate()
    assert rest_of(worker) == ["sleep succeeded", "settle sleep", "release lease_1", "leave"]


def test_a_terminal_that_is_resized_disturbs_no_worker(start: Start) -> None:
    worker = start("misbehaving:behaves", "sleep", "succeed")
    read_until(worker, "start sleep")
    for _ in range(20):
        for number in (signal.SIGWINCH, signal.SIGCONT, signal.SIGURG):
            worker.send_signal(number)
        time.sleep(0.05)
    read_until(worker, "settle succeed")
    worker.terminate()
    assert (rest_of(worker)[-1], worker.returncode) == ("leave", 0)
