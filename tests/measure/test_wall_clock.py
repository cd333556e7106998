"""Only the database's clock decides what has expired; a worker counts durations by its monotonic clock."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import tilewright.measure

SCRIPT = Path(__file__).with_name("worker_process.py")

JUMPY = """
import datetime, runpy, sys, time
day, real = 86_400.0, time.time
jumps = 0
def jumping():
    global jumps
    jumps += 1
    return real() + (day if jumps % 2 else -day)
time.time = jumping
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def worker(*command: str) -> tuple[int, list[str]]:
    """The exit code of a worker that drains after one lease, and all that it did."""
    with subprocess.Popen(
        [sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        lines = []
        leases = 0
        for line in process.stdout:
            lines.append(line.strip())
            leases += line == "lease\n"
            if leases == 2:
                process.terminate()
                lines += process.stdout.read().split("\n")
    return process.returncode, [line for line in lines if line != "renew"]


def test_a_wall_clock_that_jumps_by_a_day_both_ways_changes_nothing_that_a_worker_does() -> None:
    items = ("misbehaving:behaves", "succeed", "sleep", "raise_in_run")
    told = worker(str(SCRIPT), *items)
    assert worker("-c", JUMPY, str(SCRIPT), *items) == told
    assert told[0] == 0 and "sleep succeeded" in told[1]


WALL = {
    ("time", "time"),
    ("time", "time_ns"),
    ("datetime", "now"),
    ("datetime", "utcnow"),
    ("datetime", "today"),
    ("time", "localtime"),
    ("time", "gmtime"),
}


@pytest.mark.parametrize(
    "path", sorted(Path(tilewright.measure.__file__).parent.rglob("*.py")), ids=lambda p: str(p.name)
)
def test_no_module_of_a_worker_asks_for_the_time_of_day(path: Path) -> None:
    asked = [
        f"{node.value.id}.{node.attr} in line {node.lineno}"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and (node.value.id, node.attr) in WALL
    ]
    assert asked == []
