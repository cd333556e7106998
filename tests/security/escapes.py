"""Candidates that try to get out, each as a behaviour of one program of a fork server. Native code that was
proved right does none of this; what is shown is that it could not."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from tilewright.measure.messages import Failure, MeasureInput, MeasureResult
from tilewright.measure.program import Body, Stage

_libc = ctypes.CDLL(None, use_errno=True)
_PTRACE_ATTACH = 16
_PTRACE = {"x86_64": 101, "aarch64": 117}


def tell(item: MeasureInput, stage: Stage) -> MeasureResult:
    """Fails with what came of each attempt that the trace names, with its arguments."""
    stage.running()
    came = {name: _came_of(_ATTEMPTS[name], *arguments) for name, arguments in item.trace["attempts"]}
    raise LookupError(repr(came))


def _came_of(attempt: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return attempt(*arguments)
    except OSError as error:
        return type(error).__name__


def _read(path: str) -> str:
    with open(path) as file:
        return file.read(100)


def _write(path: str) -> str:
    with open(path, "w") as file:
        file.write("x" * 10_000)
    return "written"


def _temporary() -> str:
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"x" * 10_000)
        file.flush()
    return "written"


def _connect(host: str, port: int) -> str:
    with socket.socket() as client:
        client.connect((host, port))
    return "connected"


def _datagram(host: str, port: int) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"the token", (host, port))
    return "sent"


def _local(path: str) -> str:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)
    return "connected"


def _signal(pid: int) -> str:
    os.kill(pid, signal.SIGTERM)
    return "sent"


def _trace(pid: int) -> str:
    if _libc.ptrace(_PTRACE_ATTACH, pid, 0, 0):
        raise OSError(ctypes.get_errno(), "ptrace")
    return "attached"


def _peek(pid: int) -> str:
    return _read(f"/proc/{pid}/environ")


def _fork() -> str:
    if os.fork() == 0:
        time.sleep(60)
        os._exit(0)
    return "forked"


def _run() -> str:
    os.execv("/bin/true", ["true"])
    return "ran"


def _raise_limits() -> str:
    for which in (resource.RLIMIT_NPROC, resource.RLIMIT_FSIZE, resource.RLIMIT_AS):
        resource.setrlimit(which, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    return "raised"


def _leave_the_group() -> bool:
    try:
        os.setsid()
    except PermissionError:  # it leads its group
        return False
    return True


def _become_root() -> str:
    os.setuid(0)
    return "root"


def _listen() -> str:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
    return "listening"


def _unshare() -> str:
    if _libc.unshare(0x10000000):
        raise OSError(ctypes.get_errno(), "unshare")
    return "a namespace"


def _descriptors() -> list[int]:
    return sorted(int(d) for d in os.listdir("/proc/self/fd"))[:-1]


def _environment() -> list[str]:
    return sorted(os.environ)


_ATTEMPTS: dict[str, Callable[..., Any]] = {
    name.removeprefix("_"): value
    for name, value in list(globals().items())
    if name.startswith("_") and getattr(value, "__code__", None) is not None and name != "_came_of"
}


def _flood(item: MeasureInput, stage: Stage) -> MeasureResult:
    """Writes to stderr and to stdout for as long as it lives."""
    stage.running()
    line = "x" * 65_536
    while True:
        sys.stderr.write(line)
        os.write(1, line.encode())


def _setsid_and_hang(item: MeasureInput, stage: Stage) -> MeasureResult:
    stage.running()
    _came_of(os.setsid)
    os.setpgid(0, 0)
    while True:
        time.sleep(60)


class Escapes:
    def prepare(self, item: MeasureInput) -> Body | Failure:
        does = {"tell": tell, "flood": _flood, "setsid": _setsid_and_hang}[item.trace["behaviour"]]
        return lambda stage: does(item, stage)
