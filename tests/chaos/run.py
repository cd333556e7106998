"""Minutes in which everything that can die does: `python tests/chaos/run.py --help`.

Jobs are submitted all the time while random faults strike servers, search runners, workers, PostgreSQL, the
network, clocks and a disk. Then the faults end, and all must get going again: every job ends, and nothing
that was acknowledged is missing, doubled or wrong. Ends with 1, and says what, where something is; the folder
of such a run stays.
"""

from __future__ import annotations

import argparse
import secrets
import shutil
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from random import Random
from typing import get_args

import psutil
from client import Submitter
from evidence import read_evidence
from faults import Faults
from leaks import adopt_orphans, files_left, locks_held, processes_left
from stand import Form, Stand
from verdict import complaints

_GET_GOING_SECONDS = 240.0
_START_SECONDS = 90.0
_LEAST_RESULTS = 4


@dataclass(frozen=True, slots=True)
class Report:
    """`faults` by kind, `states` of the jobs and the reasons of the `failed` ones.

    `settled`: how many results the service took. `skipped`: why the disk was never full.
    """

    form: Form
    seconds: float
    faults: Counter[str]
    states: Counter[str]
    failed: list[str]
    settled: int
    skipped: str
    complaints: list[str]

    def __str__(self) -> str:
        faults = ", ".join(f"{name} {count}" for name, count in sorted(self.faults.items()))
        jobs = ", ".join(f"{count} {state}" for state, count in sorted(self.states.items()))
        lines = [
            f"{self.form}: {sum(self.faults.values())} faults ({faults})",
            f"{self.form}: {sum(self.states.values())} jobs ({jobs}), {self.settled} results acknowledged, "
            f"all over {self.seconds:.0f} s after the last fault",
        ]
        lines += [f"{self.form}: a job failed: {reason}" for reason in self.failed]
        if self.skipped:
            lines.append(f"{self.form}: the disk was never full: {self.skipped}")
        lines += [f"{self.form}: WRONG: {one}" for one in self.complaints]
        return "\n".join(
            [*lines, f"{self.form}: {'nothing' if not self.complaints else 'SOMETHING'} was lost"]
        )


def run(form: Form, seed: int, seconds: float, folder: Path, loud: bool) -> Report:
    """One stand, struck for so long."""
    begun = time.monotonic()

    def say(line: str) -> None:
        if loud:
            print(f"{time.monotonic() - begun:7.1f} {line}", flush=True)

    known = {child.pid for child in psutil.Process().children(recursive=True)}
    wrong: list[str] = []
    with Stand(form, folder, seed, say) as stand:
        processes = Faults(stand, Random(seed), say, "processes")
        surroundings = Faults(stand, Random(seed + 2), say, "surroundings")
        with Submitter(stand.proxy.url, stand.client_token, seed + 1, say) as submitter:
            say(f"{form} is there")
            _wait_for_results(stand, 1)
            end = time.monotonic() + seconds
            with ThreadPoolExecutor(2) as lanes:
                running = [lanes.submit(lane.until, end) for lane in (processes, surroundings)]
            for lane in running:
                lane.result()
            stand.calm()
            submitter.submit_no_more()
            say("no more faults")
            calm = time.monotonic()
            while submitter.unfinished and time.monotonic() < calm + _GET_GOING_SECONDS:
                time.sleep(0.2)
            took = time.monotonic() - calm
            say(f"{len(submitter.unfinished)} jobs are unfinished")
            if len(stand.ledger.settled) < _LEAST_RESULTS:
                wrong.append(f"{len(stand.ledger.settled)} results are too few to tell anything")
        wrong += submitter.trouble + stand.end() + stand.ended
        if (problem := stand.check()) is not None:
            wrong.append(problem)
        evidence = read_evidence(stand.db)
        wrong += complaints(evidence, stand.ledger, submitter.seeds)
        for part in stand.parts.values():
            wrong += files_left(part.temporary)
        wrong += locks_held([*folder.glob("locks/*"), *folder.glob("*.server")])
        wrong += _tracebacks(stand)
        skipped = stand.disk.reason
    wrong += processes_left(known)
    states = Counter(job["state"] for job in evidence.jobs)
    failed = [job["reason"] for job in evidence.jobs if job["state"] == "failed"]
    settled = len(stand.ledger.settled)
    faults = processes.done + surroundings.done
    return Report(form, took, faults, states, failed, settled, skipped, wrong)


def _wait_for_results(stand: Stand, count: int) -> None:
    """A stand that does nothing yet has nothing to lose."""
    deadline = time.monotonic() + _START_SECONDS
    while len(stand.ledger.settled) < count and time.monotonic() < deadline:
        time.sleep(0.2)


def _tracebacks(stand: Stand) -> list[str]:
    """Each kind once, with the whole of its first: nothing that may be expected ends in one."""
    found: dict[str, list[str]] = {}
    for part in stand.parts.values():
        lines = part.log.read_text("utf-8", "replace").splitlines()
        for n, line in enumerate(lines):
            if line.startswith("Traceback"):
                marked = list(takewhile(lambda one: one.startswith((" ", "Traceback")), lines[n:]))
                # With the entry before it, and the line after it: of what is not logged, that is the error.
                trace = "\n".join(lines[max(0, n - 1) : n + len(marked) + 1])
                found.setdefault(f"{part.name.partition('-')[0]}: {marked[-1]}", []).append(trace)
    return [f"a stack trace, {len(traces)} times, of {traces[0]}" for traces in found.values()]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, help="repeats the faults of a run, if not their moments")
    parser.add_argument("--minutes", type=float, default=5.0, help="of faults, in all (%(default)s)")
    parser.add_argument(
        "--form", choices=get_args(Form), help="one form alone; else both, one after the other"
    )
    parser.add_argument("--quiet", action="store_true", help="print what came of it alone")
    said = parser.parse_args()
    seed = secrets.randbelow(1 << 31) if said.seed is None else said.seed
    forms = (said.form,) if said.form else get_args(Form)
    print(f"seed {seed}", flush=True)
    adopt_orphans()
    failed = False
    for form in forms:
        folder = Path(tempfile.mkdtemp(prefix="tw-chaos-"))
        report = run(form, seed, said.minutes * 60 / len(forms), folder, not said.quiet)
        print(report, flush=True)
        if report.complaints:
            failed = True
            print(f"logs and database: {folder}")
        else:
            shutil.rmtree(folder)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
