"""Who has a processor of this machine to itself: a lock of the operating system for each of them.

The locks are files that every user of the machine shares, in a folder that nobody can take away from another.
What holds is the lock, not the file: a process that has ended, however it ended, holds none, and no file is
ever removed. What stands in a file is for a person to read.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from .device import Device
from .errors import MeasureError

__all__ = ["DeviceBusy", "DeviceLock", "lock_folder"]

_SHARED = (Path("/run/lock"), Path("/tmp"))
_NAME = "tilewright-devices"
# Everybody may add files, nobody may remove another's.
_OPEN_TO_ALL = 0o1777
_MOST_BYTES = 1024
_MOST_NAME = 128
_LOOK_SECONDS = 0.2


class DeviceBusy(MeasureError):
    """Another process has a processor of the device. The message names it as far as it is known."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Who said that it holds a processor."""

    pid: int | None = None
    worker: str = ""

    def __str__(self) -> str:
        who = f"the worker {self.worker!r}" if self.worker else "another worker"
        return who if self.pid is None else f"{who}, process {self.pid}"


def lock_folder() -> Path:
    """Where the locks of this machine are: the same for all of its users, whatever their own temporary
    folders."""
    return next((p for p in _SHARED if p.is_dir() and os.access(p, os.W_OK | os.X_OK)), Path("/tmp")) / _NAME


class DeviceLock:
    """A context manager that lets go of what was acquired. `acquire` and `wait` raise DeviceBusy where
    another process has one of the processors, and MeasureError where the folder is not to be trusted or
    cannot be used."""

    def __init__(self, device: Device, worker: str, folder: Path | None = None) -> None:
        self._device = device
        self._worker = worker
        self._folder = folder or lock_folder()
        self._held: list[int] = []

    def acquire(self) -> Self:
        """Takes all processors, or none."""
        folder = _opened(self._folder)
        try:
            # In one order, so that two that want the same do not both give up for long.
            for processor in sorted(self._device.processors):
                self._held.append(self._locked(folder, processor))
        except BaseException:
            self.release()
            raise
        finally:
            os.close(folder)
        return self

    def wait(
        self,
        seconds: float,
        given_up: Callable[[], bool],
        say: Callable[[str], None],
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> bool:
        """Acquires it as soon as it is free; False once `given_up`. Raises DeviceBusy after so many
        seconds."""
        ends = clock() + seconds
        told = False
        while not given_up():
            try:
                self.acquire()
            except DeviceBusy as busy:
                if clock() >= ends:
                    raise
                if not told:
                    say(f"{busy}; waiting for it")
                    told = True
                sleep(_LOOK_SECONDS)
            else:
                return True
        return False

    def release(self) -> None:
        """May be repeated."""
        while self._held:
            os.close(self._held.pop())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _locked(self, folder: int, processor: int) -> int:
        file = _file(folder, f"cpu{processor}", self._folder)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = _holder(file)
            os.close(file)
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise MeasureError(
                    f"{self._folder}/cpu{processor} cannot be locked: {error.strerror}"
                ) from error
            raise DeviceBusy(f"processor {processor} of this machine is in use by {holder}") from error
        _sign(file, self._worker)
        return file


def _opened(path: Path) -> int:
    """The folder, made where it is missing. Raises MeasureError unless it is one that all may share."""
    with contextlib.suppress(FileExistsError):
        try:
            os.mkdir(path)
            os.chmod(path, _OPEN_TO_ALL)  # apart from mkdir, which the umask has a part in
        except FileExistsError:
            raise
        except OSError as error:
            raise MeasureError(f"the folder of locks {path} cannot be made: {error.strerror}") from error
    try:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise MeasureError(
            f"the folder of locks {path} is no folder that can be used: {error.strerror}"
        ) from error
    said = os.fstat(folder)
    if said.st_uid not in (0, os.geteuid()) and not said.st_mode & stat.S_ISVTX:
        os.close(folder)
        raise MeasureError(
            f"the folder of locks {path} belongs to user {said.st_uid}, who may remove the locks of others: "
            "it should be root's, or have the sticky bit"
        )
    return folder


def _file(folder: int, name: str, path: Path) -> int:
    """A file of the folder that is open to all. Links are not followed, since anybody may have put one
    there."""
    flags = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        file = _open_or_make(folder, name, flags)
    except OSError as error:
        raise MeasureError(f"the lock {path}/{name} cannot be opened: {error.strerror}") from error
    said = os.fstat(file)
    if not stat.S_ISREG(said.st_mode) or said.st_nlink != 1:
        os.close(file)
        raise MeasureError(f"the lock {path}/{name} is no plain file: remove it")
    return file


def _open_or_make(folder: int, name: str, flags: int) -> int:
    # Linux refuses O_CREAT for the file of another user in a sticky folder (fs.protected_regular).
    for _ in range(3):
        for access in (os.O_RDWR, os.O_RDONLY):
            try:
                return os.open(name, access | flags, dir_fd=folder)
            except FileNotFoundError:
                break
            except PermissionError:
                continue
        try:
            file = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | flags, 0o666, dir_fd=folder)
        except FileExistsError:
            continue  # another made it at the same time
        os.fchmod(file, 0o666)
        return file
    return os.open(name, os.O_RDONLY | flags, dir_fd=folder)


def _sign(file: int, worker: str) -> None:
    """For those who find it locked. In vain where the file is another user's."""
    said = json.dumps({"pid": os.getpid(), "worker": worker[:_MOST_NAME]}).encode()
    with contextlib.suppress(OSError):
        os.ftruncate(file, 0)
        os.pwrite(file, said, 0)


def _holder(file: int) -> Holder:
    """What the holder wrote, which may be anything."""
    said: Any = None
    with contextlib.suppress(OSError, ValueError):
        said = json.loads(os.pread(file, _MOST_BYTES, 0))
    if not isinstance(said, dict):
        return Holder()
    pid, worker = said.get("pid"), said.get("worker")
    name = "".join(c for c in worker if c.isprintable())[:_MOST_NAME] if isinstance(worker, str) else ""
    return Holder(pid if type(pid) is int and 0 < pid < 1 << 32 else None, name)
