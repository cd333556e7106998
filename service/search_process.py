"""One search child process, its end, and its last words."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import IO, NamedTuple

WAITS = 75  # EX_TEMPFAIL of sysexits.h
"""The exit status of a search that can do nothing before a worker is there."""

_LAST_LINES = 20
_LONGEST_LINE = 500


class Invocation(NamedTuple):
    """A command line, and what the process reads from its stdin: what others must not see, such as a
    password, does not stand in a command line."""

    arguments: Sequence[str]
    said: str = ""


Command = Callable[[str, int], Invocation]
"""How to run the search of a job under an epoch."""


def search_command(db: str) -> Command:
    """The command that searches on the database `db`."""

    def command(job: str, epoch: int) -> Invocation:
        program = (sys.executable, "-m", "tilewright.service.search_child")
        options = ("--db", "-", "--job", job, "--epoch", str(epoch), "--parent", str(os.getpid()))
        return Invocation((*program, *options), db)

    return command


ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
"""For linear algebra, unless the environment says otherwise: other searches, or a worker that measures, may
run on this machine, and threads that wait for one another by spinning take their CPUs from them."""


class SearchProcess:
    """A running search. Raises OSError when it cannot be started."""

    def __init__(self, arguments: Sequence[str], said: str = "") -> None:
        # A session of its own: Ctrl-C at the server's terminal is for the server, which ends its children.
        self._process = subprocess.Popen(
            arguments,
            stdin=subprocess.PIPE if said else subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env={**ONE_THREAD, **os.environ},
        )
        if self._process.stdin is not None:
            # Far less than a pipe holds; a child that has died already says so by its status.
            with contextlib.suppress(BrokenPipeError), self._process.stdin as stdin:
                stdin.write(said.encode())
        self._lines: deque[str] = deque(maxlen=_LAST_LINES)
        assert self._process.stderr is not None
        self._reader = threading.Thread(
            target=self._read, args=(self._process.stderr,), daemon=True, name=f"stderr-{self._process.pid}"
        )
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def ended(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""
        return self._process.poll()

    def last_line(self) -> str:
        """The last line that an ended process wrote to stderr."""
        self._reader.join(1.0)
        return self._lines[-1] if self._lines else "it wrote nothing to stderr"

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()

    def wait(self, timeout: float) -> bool:
        """Whether it ended within `timeout` seconds."""
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return False
        return True

    def close(self) -> None:
        """End it, hard after half a second, and leave nothing of it."""
        self.terminate()
        if not self.wait(0.5):
            self.kill()
            self._process.wait()
        self._reader.join(1.0)

    def _read(self, stream: IO[bytes]) -> None:
        with stream:
            for line in stream:
                text = line.decode("utf-8", "replace").rstrip()
                if text:
                    self._lines.append(text[:_LONGEST_LINE])
