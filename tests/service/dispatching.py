"""The two ways to run searches, behind one face."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from service_harness import ENVIRONMENT
from shepherding import until

from tilewright.db import Store, open_store
from tilewright.service.search_process import Command, Invocation

RUNNER = Path(__file__).parent / "runner_program.py"
SLEEP = "time.sleep(60)"
DIE = "print('Traceback (most recent call last):', file=sys.stderr); sys.exit('out of ideas')"
SHOT = "os.kill(os.getpid(), signal.SIGKILL)"
SILENCE = 2.0

_CHILD = """
import os, signal, sys, time
from tilewright.service.parent_death import die_with
die_with(int(sys.argv[1]))
with open(sys.argv[2], "a") as starts:
    starts.write(f"{sys.argv[3]} {sys.argv[4]} {os.getpid()}\\n")
"""


def writing_starts(starts: Path, script: str) -> Command:
    """A search that does what `script` says, and before that writes `job epoch pid` into a file."""

    def command(job: str, epoch: int) -> Invocation:
        words = (str(os.getpid()), str(starts), job, str(epoch))
        return Invocation((sys.executable, "-c", _CHILD + script, *words))

    return command


@dataclass
class Rig:
    """`restart` begins whatever runs searches anew, after `kill` or `drain` ended all of it."""

    url: str
    store: Store
    starts: Path
    script: str = SLEEP
    limit: int = 4
    restarts: int = 3
    patience: float = 3.0
    hosts: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def begin(self) -> None:
        raise NotImplementedError

    def kill(self) -> None:
        """SIGKILL of what runs the searches."""
        for host in self.hosts:
            host.kill()
            host.wait()
        self.hosts.clear()

    def drain(self) -> list[int]:
        """SIGTERM; the exit codes."""
        for host in self.hosts:
            host.terminate()
        codes = [host.wait(15) for host in self.hosts]
        self.hosts.clear()
        return codes

    def searches(self) -> list[tuple[str, int, int]]:
        """The (job, epoch, pid) of each search that has begun."""
        if not self.starts.exists():
            return []
        rows = [line.split() for line in self.starts.read_text().splitlines()]
        return [(job, int(epoch), int(pid)) for job, epoch, pid in rows]

    def epochs(self, job: str) -> list[int]:
        return [epoch for name, epoch, _ in self.searches() if name == job]

    def alive(self) -> list[int]:
        """Process ids of searches that still run."""
        return [pid for _, _, pid in self.searches() if _runs(pid)]

    def _host(self, role: str) -> None:
        words = (role, self.url, self.starts, self.script, self.limit, self.restarts, self.patience, SILENCE)
        process = subprocess.Popen([sys.executable, RUNNER, *map(str, words)], env=ENVIRONMENT)
        self.hosts.append(process)


class EmbeddedRig(Rig):
    def begin(self) -> None:
        self._host("embedded")


class QueuedRig(Rig):
    def begin(self) -> None:
        self._host("queued")


@contextlib.contextmanager
def rig_of(kind: type[Rig], url: str, folder: Path) -> Iterator[Rig]:
    with open_store(url) as store:
        rig = kind(url, store, folder / "starts")
        try:
            yield rig
        finally:
            rig.kill()
            until(lambda: rig.alive() == [])


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
