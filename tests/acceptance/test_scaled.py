"""`make scaled`: the main job on PostgreSQL, two API processes, two search runners and a worker, and that
nothing is left of them."""

import contextlib
import re
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


def of(data: Path) -> list[psutil.Process]:
    """Processes that have to do with this directory."""
    found = []
    for process in psutil.process_iter(["cmdline", "cwd"]):
        words = process.info["cmdline"] or []
        if str(data) in " ".join(words) or str(process.info["cwd"]).startswith(str(data)):
            found.append(process)
    return found


def shared(processes: list[psutil.Process]) -> set[Path]:
    """The pieces of shared memory that these have mapped: other servers of PostgreSQL may run here."""
    found = set()
    for process in processes:
        with contextlib.suppress(OSError):
            maps = Path(f"/proc/{process.pid}/maps").read_text()
            found |= {Path(one) for one in re.findall(r"/dev/shm/\S+", maps)}
    return found


def test_the_main_job_in_the_scaled_form_which_leaves_nothing_and_goes_on_afterwards(
    data: Path, until: Any
) -> None:
    process, url = start(data)
    token = (data / "token").read_text().strip()
    with Client(url, token) as client:
        job = client.submit(MATMUL, trials=8, seed=1)
        done = client.job(job.id, wait=200)
        assert (done.state, done.progress.done) == ("completed", 8)
        lib = tw.build(topi.create(MATMUL), target="llvm", schedules=client)
        assert lib.schedule_source.kind == "exact"
    memory = shared(of(data))
    assert memory
    stop(process)
    until("the processes to end", lambda: of(data) == [], 10)
    until("shared memory to be given back", lambda: not any(one.exists() for one in memory), 10)
    # Begun again, it knows what it knew.
    process, url = start(data)
    with Client(url, (data / "token").read_text().strip()) as client:
        assert client.job(job.id).state == "completed"
    stop(process)
    until("the processes to end", lambda: of(data) == [], 10)
