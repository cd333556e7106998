"""Which process tunes a local job, so that others can tell that it is gone.

psutil takes 35 ms to load: whoever reads no identity does without it.
"""

import json
import os
import socket
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Self

_CLOCK_SECONDS = 5.0
"""A process' start is told in wall time, and a clock that is set moves it by as much; a number that is given
again so soon after would have to be that of another tuning process."""


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """`machine` is one boot of one machine and its name space of process numbers; `started` is the time of
    the process' start in seconds since the epoch."""

    machine: str
    pid: int
    started: float

    @classmethod
    def own(cls) -> Self:
        """This very process; after a fork, the child."""
        import psutil

        pid = os.getpid()
        return cls(_machine(), pid, psutil.Process(pid).create_time())

    @classmethod
    def read(cls, text: str) -> Self | None:
        """What `text` names, None for an empty one."""
        return cls(**json.loads(text)) if text else None

    @property
    def text(self) -> str:
        """The form in which a store keeps it."""
        return json.dumps(asdict(self), sort_keys=True)

    def __str__(self) -> str:
        return f"process {self.pid} on {self.machine.split()[0]}"

    @property
    def gone(self) -> bool | None:
        """Whether the process has ended; None where this machine cannot tell."""
        import psutil

        if self.machine != _machine():
            return None
        try:
            process = psutil.Process(self.pid)
            if process.status() == psutil.STATUS_ZOMBIE:
                return True
            return bool(abs(process.create_time() - self.started) > _CLOCK_SECONDS)
        except psutil.NoSuchProcess:
            return True
        except psutil.AccessDenied:
            return None


@cache
def _machine() -> str:
    boot = _read("/proc/sys/kernel/random/boot_id") or _booted()
    try:
        space = str(os.stat("/proc/self/ns/pid").st_ino)
    except OSError:
        space = "-"
    return f"{socket.gethostname() or '-'} {boot} {space}"


def _booted() -> str:
    import psutil

    return f"{psutil.boot_time():.0f}"


def _read(path: str) -> str:
    try:
        return Path(path).read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
