"""Forked children as their parent sees them: their pipes, their last words, their ends."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NoReturn, Protocol, Self

from .words import Tail

_READ = 1 << 16
_SEND_SECONDS = 5.0

POLL_SECONDS = 0.005
"""How often a child that closed its pipes is asked whether it has ended."""


@dataclass(slots=True)
class Forked:
    """A child with a channel to its parent and a pipe for its last words, in a process group of its own."""

    pid: int
    channel: socket.socket
    last_words: int
    open_ends: set[int] = field(init=False)
    tail: Tail = field(default_factory=Tail)

    def __post_init__(self) -> None:
        self.open_ends = {self.channel.fileno(), self.last_words}

    @classmethod
    def begin(cls, live: Callable[[int, int, int], NoReturn]) -> Self:
        """Forks a child that does nothing but `live`, given its ends of the channel and of the pipe and the
        parent's number. Whoever begins one must `end` it. The caller must have one thread."""
        ours, theirs = socket.socketpair()
        last_words = os.pipe()
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            live(theirs.fileno(), last_words[1], parent)
        theirs.close()
        os.close(last_words[1])
        with contextlib.suppress(OSError):  # the child does it too; the first of the two wins
            os.setpgid(pid, pid)
        ours.setblocking(False)
        os.set_blocking(last_words[0], False)
        return cls(pid, ours, last_words[0])

    def send(self, frame: bytes) -> None:
        """To a child that waits for it; in vain where it has ended, as will be seen."""
        self.channel.settimeout(_SEND_SECONDS)
        with contextlib.suppress(OSError):
            self.channel.sendall(frame)
        self.channel.setblocking(False)

    def read(self, descriptor: int) -> bytes | None:
        """Takes what there is of one of the open ends: what came over the channel, None at its end. Last
        words are kept apart."""
        try:
            data = os.read(descriptor, _READ)
        except BlockingIOError:
            return b""
        except ConnectionResetError:
            data = b""
        if not data:
            self.open_ends.discard(descriptor)
            return None
        if descriptor == self.last_words:
            self.tail.feed(data)
            return b""
        return data

    @property
    def words(self) -> str:
        """The end of what it has said until now, or, of one that was ended, at all."""
        if self.channel.fileno() >= 0:
            self._drain()
        return self.tail.text

    def forget_words(self) -> None:
        """What it said until now are not its last words."""
        self._drain()
        self.tail = Tail()

    @property
    def has_ended(self) -> bool:
        """Of a child that closed its pipes."""
        if self.open_ends:
            return False
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def kill(self) -> None:
        """Its whole group. Until the child is reaped, the number of its group cannot be given to others."""
        for kill in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                kill(self.pid, signal.SIGKILL)

    def end(self) -> int:
        """Kills the child, reaps it and takes its last words; its wait status."""
        self.kill()
        status = os.waitpid(self.pid, 0)[1]
        self._drain()
        self.channel.close()
        os.close(self.last_words)
        return status

    def _drain(self) -> None:
        # A process that escaped may hold the pipe open, so this does not wait.
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self.last_words, _READ):
                self.tail.feed(data)


class Awaited(Protocol):
    """What somebody waits for: a child and what is known of it."""

    @property
    def forked(self) -> Forked: ...

    @property
    def is_over(self) -> bool:
        """Whether nothing more is expected of it."""

    def hear(self, data: bytes) -> None:
        """Takes what came over its channel."""

    def left(self) -> float:
        """Seconds until it is late, or until it is to be looked at anyway."""

    def look_around(self) -> None:
        """Whether it is late, or has ended."""


def wait(awaited: Sequence[Awaited], until: Awaited) -> None:
    """Watches over all of them until `until`, which is one of them, is over."""
    with selectors.DefaultSelector() as selector:
        for one in awaited:
            for end in one.forked.open_ends:
                selector.register(end, selectors.EVENT_READ, one)
        while not until.is_over:
            for key, _ in selector.select(min(one.left() for one in awaited)):
                data = key.data.forked.read(key.fd)
                if data is None:
                    selector.unregister(key.fd)
                elif data:
                    key.data.hear(data)
            for one in awaited:
                one.look_around()


def death_of(status: int, doing: str, words: str) -> tuple[str, bool]:
    """What a child's wait status says of one that gave no result, and whether it was for want of memory."""
    if not os.WIFSIGNALED(status):
        code = os.waitstatus_to_exitcode(status)
        return f"it exited with status {code} while {doing}, without a result", False
    name = _name_of(os.WTERMSIG(status))
    is_memory = name in ("SIGABRT", "SIGSEGV") and ("bad_alloc" in words or "out of memory" in words.lower())
    hint = ", perhaps by the system for want of memory" if name == "SIGKILL" else ""
    return f"it died of {name} while {doing}{hint}", is_memory


def _name_of(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
