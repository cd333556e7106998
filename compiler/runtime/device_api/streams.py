"""Streams on the CPU: queues, each with a thread that takes its work in order."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from queue import SimpleQueue

from .api import Device, DeviceError

Work = Callable[[], object]


class CpuStream:
    """A queue of work. Its thread starts with the first piece and ends when the stream is freed or gone."""

    def __init__(self, device: Device, number: int) -> None:
        self._device = device
        self._number = number
        self._lane: _Lane | None = None
        self._lock = threading.Lock()
        self._freed = False

    @property
    def device(self) -> Device:
        return self._device

    def __repr__(self) -> str:
        return f"stream {self._number} of {self._device}"

    def submit(self, work: Work, always: bool = False) -> None:
        """Queue a piece of work. After an error the rest is skipped, except what is to run `always`."""
        with self._lock:
            self.check()
            if self._lane is None:
                self._lane = _Lane(repr(self))
                weakref.finalize(self, self._lane.queue.put, None)
            self._lane.queue.put((work, always))

    def synchronize(self) -> None:
        """Wait until all work submitted so far is done. Raises its first error, once."""
        self._check_thread("wait for itself")
        self.check()
        if self._lane is None:
            return
        done = threading.Event()
        self.submit(done.set, always=True)
        done.wait()
        self._lane.raise_error()

    def free(self, forget: Work) -> None:
        """Wait for the work and end the thread. Raises the first error of the work. `forget` is called as
        soon as nothing more can be submitted.
        """
        self._check_thread("free it")
        with self._lock:
            self.check()
            self._freed = True
        forget()
        if self._lane is not None:
            self._lane.queue.put(None)
            self._lane.thread.join()
            self._lane.raise_error()

    @property
    def is_usable(self) -> bool:
        """Whether it was not freed, and this process is the one that has its thread."""
        return not self._freed and (self._lane is None or self._lane.process == os.getpid())

    def check(self) -> None:
        """Raises DeviceError where it was freed, and in a fork of the process that has its thread."""
        if self._freed:
            raise DeviceError(f"{self!r} was freed")
        if not self.is_usable:
            raise DeviceError(
                f"{self!r} belongs to the process that this one was forked from; create another"
            )

    def _check_thread(self, what: str) -> None:
        if self._lane is not None and threading.current_thread() is self._lane.thread:
            raise DeviceError(f"work of {self!r} cannot {what}")


class _Lane:
    """The queue and its thread, which knows nothing of the stream, so that a stream can go out of use."""

    def __init__(self, name: str) -> None:
        self.queue: SimpleQueue[tuple[Work, bool] | None] = SimpleQueue()
        self.process = os.getpid()
        self._error: BaseException | None = None
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.thread.start()

    def raise_error(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _run(self) -> None:
        while (item := self.queue.get()) is not None:
            work, always = item
            if self._error is not None and not always:
                continue
            try:
                work()
            except BaseException as error:  # the thread's edge: raised where somebody waits for the work
                self._error = error
            del item, work  # or the last piece of work would keep its arrays until the next one comes
