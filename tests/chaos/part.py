"""One process of the stand, started through the command line and started again when it ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import psutil

_YOUNG = 30.0
_MAIN = "from tilewright.service.cli import main; main()"


@dataclass
class Part:
    """`folder` is its own, with its log and the folder that it takes for the machine's temporary one.

    `hit`: whether a fault was aimed at it since it was begun; what ends without one has ended by itself.
    """

    name: str
    words: tuple[str, ...]
    folder: Path
    environment: dict[str, str]
    temporary: Path
    process: subprocess.Popen[bytes] | None = None
    begun: float = 0.0
    hit: bool = False
    again_at: float = 0.0
    ends: list[str] = field(default_factory=list)

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def begin(self) -> None:
        self.temporary.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _MAIN, *self.words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd=self.folder,
                env={**self.environment, "TMPDIR": str(self.temporary)},
            )
        self.begun = time.monotonic()
        self.hit = False

    def tree(self) -> list[psutil.Process]:
        """It and all that it started, itself first; nothing where it does not run."""
        if self.process is None or self.process.poll() is not None:
            return []
        with contextlib.suppress(psutil.NoSuchProcess):
            root = psutil.Process(self.process.pid)
            return [root, *root.children(recursive=True)]
        return []

    def children(self, word: str) -> list[psutil.Process]:
        """Those of its processes whose command line holds this word."""
        found = []
        for each in self.tree()[1:]:
            with contextlib.suppress(psutil.Error):
                if any(word in said for said in each.cmdline()):
                    found.append(each)
        return found

    def candidates(self) -> list[psutil.Process]:
        """The processes in which a worker's candidates are built and run."""
        found = []
        for server in self.children("tilewright.measure.zygote"):
            with contextlib.suppress(psutil.NoSuchProcess):
                found += server.children(recursive=True)
        return found

    def go_on(self) -> None:
        for each in self.tree():
            send(each, signal.SIGCONT)

    def end(self, seconds: float) -> str | None:
        """SIGTERM; what is wrong with how it ended."""
        if self.process is None or self.process.poll() is not None:
            return None
        self.process.terminate()
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            for each in reversed(self.tree()):
                send(each, signal.SIGABRT if each.pid == self.process.pid else signal.SIGKILL)
            self.process.kill()
            self.process.wait()
            return (
                f"{self.name} still ran {seconds:g} s after SIGTERM; its log ends with\n{self.last_lines()}"
            )
        if code == -signal.SIGTERM and time.monotonic() - self.begun < _YOUNG:
            return None  # it had not begun to listen to signals, and so nothing else
        return None if code == 0 else f"{self.name} ended with {code} after SIGTERM:\n{self.last_lines()}"

    def last_lines(self, count: int = 15) -> str:
        return "\n".join(self.log.read_text("utf-8", "replace").splitlines()[-count:])


def send(process: psutil.Process, number: signal.Signals) -> bool:
    """Whether it was there to be sent to."""
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        return False
    return True


def environment(**more: str) -> dict[str, str]:
    """Of the processes of a stand: what this one has, without settings of tilewright."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TILEWRIGHT_")}
    return {**kept, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **more}
