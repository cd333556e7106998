"""Random schedules of many workloads, in processes that may die: `python tests/fuzz/run.py --help`."""

from __future__ import annotations

import argparse
import json
import os
import secrets
import select
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from draw import STEPS
from minimal import minimal, reproduction
from tally import Tally
from workloads import WORKLOADS

from tilewright.compiler.schedule import Trace

HERE = Path(__file__).resolve().parent
#: Seconds that one schedule may take, its minimal form included.
PATIENCE = 120.0


class Worker:
    """A process that tries schedules; it is started anew when one kills it."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._start()

    def _start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "worker.py"), self._target],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=HERE,
        )
        assert self._process.stdout is not None
        self._lines = Lines(self._process.stdout.fileno())

    def try_one(self, number: int, seed: str, workload: str) -> dict[str, Any]:
        """What the worker told of the schedule; a failure of kind `crash` or `hang` where it told nothing."""
        stdin = self._process.stdin
        assert stdin is not None
        stdin.write(f"{number} {seed} {workload}\n".encode())
        stdin.flush()
        begun: dict[str, Any] = {}
        while (line := self._lines.next(PATIENCE)) is not None:
            told: dict[str, Any] = json.loads(line)
            if "end" in told:
                return told
            begun = told
        return self._died(number, workload, begun)

    def _died(self, number: int, workload: str, begun: dict[str, Any]) -> dict[str, Any]:
        try:
            self._process.wait(2)
            hung = False
        except subprocess.TimeoutExpired:
            hung = True
        self.close()
        code = self._process.returncode
        self._start()
        told: dict[str, Any] = {
            "end": number,
            "workload": workload,
            "applied": {},
            "refused": {},
            "failure": "hang" if hung else "crash",
            "message": f"no answer within {PATIENCE:g} s" if hung else f"the process ended with {code}",
            "python": f"schedule number {number}, before it was built",
        }
        if "trace" in begun:
            trace = Trace.from_json(begun["trace"])
            if not hung:
                trace = minimal(trace, WORKLOADS[workload].make(), lambda t: self._crashes(workload, t))
            told["python"] = reproduction(workload, trace, self._target)
        return told

    def _crashes(self, workload: str, trace: Trace) -> bool:
        code = reproduction(workload, trace, self._target)
        done = subprocess.run([sys.executable, "-c", code], cwd=HERE, capture_output=True, timeout=PATIENCE)
        return done.returncode < 0

    def close(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.communicate()


class Lines:
    """Lines of a pipe as they come; none waits in a buffer of Python's while the pipe is asked for more."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._rest = b""

    def next(self, seconds: float) -> str | None:
        """The next line; None at the end of the stream, or when none came for so long."""
        end = time.monotonic() + seconds
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self._pipe], [], [], max(0.0, end - time.monotonic()))
            more = os.read(self._pipe, 1 << 16) if ready else b""
            if not more:
                return None
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode()


def fuzz(
    seed: int, schedules: int, seconds: float, jobs: int, target: str, workloads: list[str], first: int = 0
) -> Tally:
    """Tries up to so many schedules for up to so many seconds; number n of a seed is always the same."""
    tally, lock = Tally(), threading.Lock()
    numbers = iter(range(first, first + schedules))
    end = time.monotonic() + seconds

    def work() -> None:
        worker = Worker(target)
        try:
            while time.monotonic() < end:
                with lock:
                    number = next(numbers, None)
                if number is None:
                    return
                told = worker.try_one(number, f"{seed}/{number}", workloads[number % len(workloads)])
                with lock:
                    tally.add(told)
                    if "failure" in told:
                        print(report(told, seed), flush=True)
        finally:
            worker.close()

    threads = [threading.Thread(target=work) for _ in range(jobs)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return tally


def report(told: dict[str, Any], seed: int) -> str:
    """A failure, for people."""
    head = f"--- {told['failure']} in {told['workload']!r}, schedule {told['end']} of seed {seed}"
    return f"{head}\n{told['message']}\n\n{told['python']}\n---"


def main() -> int:
    p = argparse.ArgumentParser(description="Random schedules, compared with the unscheduled program.")
    p.add_argument("--seed", type=int, default=None, help="default: a fresh one, which is printed")
    p.add_argument("--schedules", type=int, default=20_000)
    p.add_argument("--first", type=int, default=0, help="the number of the first schedule")
    p.add_argument("--seconds", type=float, default=3600.0)
    p.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    p.add_argument("--target", default="llvm")
    p.add_argument(
        "--workload", action="append", choices=list(WORKLOADS), help="only this one; may be given again"
    )
    a = p.parse_args()
    seed = secrets.randbelow(10**9) if a.seed is None else a.seed
    print(f"seed {seed}", flush=True)
    workloads = a.workload or list(WORKLOADS)
    begun = time.monotonic()
    tally = fuzz(seed, a.schedules, a.seconds, a.jobs, a.target, workloads, a.first)
    print(tally.table(list(STEPS)))
    took = time.monotonic() - begun
    print(f"{took:.0f} s, {len(tally.steps) / took:.1f} schedules a second; {len(tally.failures)} failures")
    lacking = tally.lacking(list(STEPS), workloads) if a.workload is None else []
    for line in lacking:
        print(f"too seldom: {line}")
    return 1 if tally.failures or lacking else 0


if __name__ == "__main__":
    sys.exit(main())
