"""The CPU as a device: one, whose memory is the process's own."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable
from functools import lru_cache
from itertools import count
from weakref import WeakSet

import numpy as np

from .api import (
    ALIGNMENT,
    AttributeValue,
    Device,
    DeviceError,
    Memory,
    Stream,
    check_copy,
    check_free,
    check_request,
)
from .pool import WorkspacePool
from .streams import CpuStream

API_VERSION = 1


class CpuAPI:
    """The DeviceAPI of the CPU. Its streams are queues, each with a thread of its own."""

    name = "cpu"
    host_accessible = True

    def __init__(self) -> None:
        self._pool = WorkspacePool(self.allocate, self.free)
        self._numbers = count(1)
        self._streams: WeakSet[CpuStream] = WeakSet()
        self._local = threading.local()

    def attribute(self, index: int, name: str) -> AttributeValue:
        if name == "exist":
            return index == 0
        return _facts().get(name) if index == 0 else None

    def allocate(self, index: int, nbytes: int, alignment: int = ALIGNMENT) -> Memory:
        _check_index(index)
        check_request(nbytes, alignment)
        if nbytes + alignment > sys.maxsize:
            raise MemoryError(f"cpu({index}) cannot have {nbytes} bytes")
        block = np.empty(nbytes + alignment, np.uint8)
        start = block.ctypes.data
        return Memory(Device("cpu", index), start + -start % alignment, nbytes, block, owned=True)

    def free(self, memory: Memory) -> None:
        check_free(memory)
        memory.freed = True
        memory.keep = None

    def allocate_workspace(self, index: int, nbytes: int) -> Memory:
        _check_index(index)
        return self._pool.take(index, nbytes)

    def free_workspace(self, memory: Memory) -> None:
        self._pool.give_back(memory)

    def release_workspaces(self) -> None:
        self._pool.release()

    def copy(
        self,
        source: Memory,
        target: Memory,
        nbytes: int,
        source_offset: int = 0,
        target_offset: int = 0,
        stream: Stream | None = None,
    ) -> None:
        check_copy(source, target, nbytes, source_offset, target_offset)
        start, to = source.address + source_offset, target.address + target_offset
        held = (source.keep, target.keep)  # space that is freed meanwhile stays until the copy is done

        def move(held: object = held) -> None:
            ctypes.memmove(to, start, nbytes)

        chosen = stream or self.current_stream(0)
        if chosen is None:
            move()
        else:
            self.submit(chosen, move)

    def create_stream(self, index: int) -> Stream:
        _check_index(index)
        stream = CpuStream(Device("cpu", index), next(self._numbers))
        self._streams.add(stream)
        return stream

    def free_stream(self, stream: Stream) -> None:
        own = _own(stream)
        own.free(lambda: self._forget(own))

    def set_stream(self, index: int, stream: Stream | None) -> None:
        _check_index(index)
        self._local.stream = None if stream is None else _own(stream)

    def current_stream(self, index: int) -> Stream | None:
        _check_index(index)
        return getattr(self._local, "stream", None)

    def submit(self, stream: Stream, work: Callable[[], object]) -> None:
        _own(stream).submit(work)

    def synchronize(self, index: int, stream: Stream | None = None) -> None:
        _check_index(index)
        if stream is not None:
            _own(stream).synchronize()
            return
        for one in list(self._streams):
            try:
                one.synchronize()
            except DeviceError:
                if one.is_usable:  # and not freed meanwhile, or of the process before a fork
                    raise

    def synchronize_streams(self, before: Stream, after: Stream) -> None:
        first, second = _own(before), _own(after)
        reached = threading.Event()
        first.submit(reached.set, always=True)
        second.submit(lambda: _wait(reached))

    def _forget(self, stream: CpuStream) -> None:
        if self.current_stream(0) is stream:
            self.set_stream(0, None)
        self._streams.discard(stream)


API = CpuAPI()


def _wait(event: threading.Event) -> None:
    event.wait()


def _own(stream: Stream) -> CpuStream:
    if not isinstance(stream, CpuStream):
        raise DeviceError(f"{stream!r} is no stream of the CPU")
    stream.check()
    return stream


def _check_index(index: int) -> None:
    if index != 0:
        raise DeviceError(f"there is no {Device('cpu', index)}; the CPU is cpu(0)")


@lru_cache(maxsize=1)
def _facts() -> dict[str, AttributeValue]:
    import psutil

    from ...target.hardware import detect

    facts = detect().facts
    return {
        "device_name": facts["model_name"],
        "compute_version": facts["mcpu"],
        "api_version": API_VERSION,
        "max_threads": facts["usable_cores"] or os.cpu_count(),
        "multi_processor_count": facts["physical_cores"],
        "total_memory": psutil.virtual_memory().total,
        "l1d": facts["l1d"],
        "l2": facts["l2"],
        "l3": facts["l3"],
    }
