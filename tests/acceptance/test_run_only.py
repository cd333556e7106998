"""Devices without a compiler, as real processes: a whole job, emulated; and kills of everyone concerned."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tilewright.compiler import topi
from tilewright.compiler.ir import workload_key
from tilewright.compiler.target import Hardware, Target

MATMUL = {"op": "matmul", "m": 48, "n": 48, "k": 48, "dtype": "float32"}
BOARD = {
    "architecture": "aarch64",
    "vendor": "0x41",
    "family": "8",
    "model": "0xd03",
    "stepping": "0x0.4",
    "features": ["neon"],
    "l1d": 32768,
    "l2": 524288,
    "l3": None,
    "accelerator": None,
    "mcpu": "cortex-a53",
}
EMULATOR = "qemu-aarch64-static"
needs_emulator = pytest.mark.skipif(shutil.which(EMULATOR) is None, reason=f"needs {EMULATOR}")
needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="programs of their own are for Linux")


class Board:
    """A device: the script that the command line prints, run by Python alone, in a folder of its own."""

    def __init__(self, fleet: Any, folder: Path) -> None:
        self.fleet = fleet
        self.folder = folder
        script = subprocess.run(
            [sys.executable, "-m", "tilewright.service.cli", "worker", "runner-script"],
            check=True,
            capture_output=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        )
        (folder / "runner.py").write_bytes(script.stdout)
        (folder / "token").write_bytes(fleet.token("worker").read_bytes())
        (folder / "work").mkdir()
        (folder / "work").chmod(0o755)

    def start(self, *options: str) -> subprocess.Popen[bytes]:
        where = [
            "--url",
            self.fleet.url,
            "--token-file",
            str(self.folder / "token"),
            "--work-dir",
            str(self.folder / "work"),
        ]
        with (self.folder / "log").open("ab") as log:
            child = subprocess.Popen(
                # -I: neither tilewright nor anything else is found.
                [
                    sys.executable,
                    "-I",
                    str(self.folder / "runner.py"),
                    "--url",
                    self.fleet.url,
                    *where,
                    *options,
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={"PATH": os.environ["PATH"], "TILEWRIGHT_LOCK_FOLDER": str(self.folder / "locks")},
                start_new_session=True,
            )
        self.fleet.children.append(child)
        return child

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()


@pytest.fixture
def board(fleet: Any) -> Iterator[Board]:
    fleet.serve()
    with tempfile.TemporaryDirectory(prefix="tilewright-board-") as folder:
        Path(folder).chmod(0o755)
        yield Board(fleet, Path(folder))


@pytest.mark.slow
@needs_emulator
def test_an_emulated_board_ends_with_the_best_schedule_of_its_own_hardware(
    board: Board, fleet: Any, until: Any
) -> None:
    (board.folder / "facts.json").write_text(json.dumps(BOARD))
    facts = {**BOARD, "vendor": f"emulated by {EMULATOR}: 0x41"}
    device = board.start("--exec-prefix", EMULATOR, "--facts", str(board.folder / "facts.json"))
    until("the device to attach", lambda: "attached" in board.log)
    with fleet.client() as client:
        job = client.submit(MATMUL, trials=8, seed=1)
        done = fleet.finished(job.id, 110)
        assert (done.state, done.progress.done) == ("completed", 8)
        trials = list(client.trials(job.id))
    assert {t.outcome for t in trials} <= {"ok", "censored"}
    assert all(0 < t.error <= 1 for t in trials)
    hardware = Hardware.of(facts)
    target = Target.parse("llvm", hardware)
    assert (target.mcpu, target.architecture) == ("cortex-a53", "aarch64")
    workload = workload_key(topi.create(MATMUL))
    with fleet.client() as client:
        best = client.best(workload, target.key, hardware.key)
    assert best is not None
    assert best.seconds == min(t.seconds for t in trials if t.outcome == "ok")
    device.terminate()
    assert device.wait(20) == 0
    assert list((board.folder / "work").iterdir()) == []


@pytest.mark.slow
@needs_linux
def test_killed_builders_and_devices_lose_nothing(board: Board, fleet: Any, until: Any) -> None:
    device = board.start("--name", "board")
    until("the device to attach", lambda: "attached" in board.log)
    with fleet.client() as client:
        job = client.submit(MATMUL, trials=24, seed=1)
        seen: set[int] = set()
        for _ in range(3):
            before = len(seen)
            until("the next result", lambda n=before: len(settled(client, job.id)) > n)
            seen = settled(client, job.id)
            kill_builder(fleet)
            fleet.kill(device)
            device = board.start("--name", "board")
        done = fleet.finished(job.id, 110)
        assert (done.state, done.progress.done) == ("completed", 24)
        outcomes = {t.number: t.outcome for t in client.trials(job.id)}
    assert seen <= {n for n, outcome in outcomes.items() if outcome in ("ok", "censored")}
    assert set(outcomes.values()) <= {"ok", "censored", "crashes_device"}
    device.terminate()
    assert device.wait(20) == 0
    assert list((board.folder / "work").iterdir()) == []
    assert [p for p in psutil.process_iter(["cmdline"]) if str(board.folder) in str(p.info["cmdline"])] == []


def settled(client: Any, job: str) -> set[int]:
    return {t.number for t in client.trials(job) if t.outcome in ("ok", "censored")}


def kill_builder(fleet: Any) -> None:
    for process in fleet.descendants():
        if "tilewright.service.builder_child" in process.cmdline():
            process.kill()
            process.wait(5)


@pytest.mark.slow
@needs_linux
def test_a_builder_elsewhere_builds_with_a_token_of_its_own(fleet: Any, tmp_path: Path, until: Any) -> None:
    fleet.settings["TILEWRIGHT_BUILDER"] = "false"
    fleet.serve()
    with tempfile.TemporaryDirectory(prefix="tilewright-board-") as folder:
        Path(folder).chmod(0o755)
        board = Board(fleet, Path(folder))
        device = board.start()
        until("the device to attach", lambda: "attached" in board.log)
        token = Path(shutil.move(fleet.token("builder"), tmp_path / "builder-token"))
        options = ["--url", fleet.url, "--token-file", str(token)]
        with fleet.client() as client:
            job = client.submit(MATMUL, trials=4)
            time.sleep(1)
            assert client.job(job.id).progress.done == 0
            builder = fleet.start("builder.log", "builder", "run", *options)
            assert fleet.finished(job.id).state == "completed"
        for child in (device, builder):
            child.terminate()
            assert child.wait(20) == 0
    assert "built in" in fleet.log("builder.log")
    wrong = fleet.start(
        "wrong.log", "builder", "run", "--url", fleet.url, "--token-file", str(fleet.token("worker"))
    )
    assert wrong.wait(30) == 3
