"""`make scaled`: the main job on PostgreSQL, two API processes, two search runners and a worker, and that
nothing is left of them."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

import tilewright as tw
from tilewright.compiler import topi
from tilewright.service.client import Client

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
ROOT = Path(__file__).parents[2]
MATMUL = {"op": "matmul", "m": 64, "n": 64, "k": 64, "dtype": "float32"}


@pytest.fixture
def data() -> Iterator[Path]:
    """Where another user than root, as whom PostgreSQL runs, gets to."""
    with tempfile.TemporaryDirectory(prefix="tw-scaled-") as folder:
        Path(folder).chmod(0o711)
        yield Path(folder) / "data"


def start(data: Path) -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "deploy" / "scaled.py"), "--data", str(data), "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def stop(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 0
    assert process.stdout is not None
    process.stdout.close()


def of(data: Path) -> list[list[str]]:
    """Command lines of processes that have to do with this directory."""
    found = []
    for process in psutil.process_iter(["cmdline", "cwd"]):
        words = process.info["cmdline"] or []
        if str(data) in " ".join(words) or str(process.info["cwd"]).startswith(str(data)):
            found.append(words)
    return found


def abandoned() -> set[str]:
    """Pieces of shared memory that no process has mapped: other servers of PostgreSQL may run here."""
    there = set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()
    for process in psutil.process_iter():
        try:
            maps = Path(f"/proc/{process.pid}/maps").read_text()
        except OSError:
            continue
        there -= {name for name in there if f"/dev/shm/{name}" in maps}
    return there


def test_the_main_job_in_the_scaled_form_which_leaves_nothing_and_goes_on_afterwards(
    data: Path, until: Any
) -> None:
    before = abandoned()
    process, url = start(data)
    token = (data / "token").read_text().strip()
    with Client(url, token) as client:
        job = client.submit(MATMUL, trials=8, seed=1)
        done = client.job(job.id, wait=200)
        assert (done.state, done.progress.done) == ("completed", 8)
        lib = tw.build(topi.create(MATMUL), target="llvm", schedules=client)
        assert lib.schedule_source.kind == "exact"
    stop(process)
    until("the processes to end", lambda: of(data) == [], 10)
    until("shared memory to be given back", lambda: abandoned() <= before, 10)
    # Begun again, it knows what it knew.
    process, url = start(data)
    with Client(url, (data / "token").read_text().strip()) as client:
        assert client.job(job.id).state == "completed"
    stop(process)
    until("the processes to end", lambda: of(data) == [], 10)
