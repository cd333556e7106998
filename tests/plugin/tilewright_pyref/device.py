"""Two devices whose memory the host reaches by copies only, and whose streams do their work at once."""

import ctypes
import threading
from collections.abc import Callable
from functools import partial

from tilewright.compiler.runtime.device_api import (
    Device,
    DeviceError,
    Memory,
    Stream,
    WorkspacePool,
    check_copy,
    check_free,
    check_request,
)

COUNT = 2
MEMORY = 1 << 26


class PyrefStream:
    """A stream. The first error of its work is kept for who waits, and the work after it is skipped."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self.error: Exception | None = None
        self.freed = False

    @property
    def device(self) -> Device:
        return self._device

    def run(self, work: Callable[[], object]) -> None:
        if self.error is None:
            try:
                work()
            except Exception as error:  # raised by synchronize
                self.error = error

    def raise_error(self) -> None:
        error, self.error = self.error, None
        if error is not None:
            raise error


class PyrefAPI:
    """The DeviceAPI of pyref."""

    name = "pyref"
    host_accessible = False

    def __init__(self) -> None:
        self._pool = WorkspacePool(self.allocate, self.free)
        self._streams: list[PyrefStream] = []
        self._local = threading.local()

    def attribute(self, index: int, name: str) -> int | str | bool | None:
        if name == "exist":
            return 0 <= index < COUNT
        facts: dict[str, int | str] = {
            "device_name": "interpreter",
            "api_version": 1,
            "max_threads": 1,
            "total_memory": MEMORY,
        }
        return facts.get(name) if 0 <= index < COUNT else None

    def allocate(self, index: int, nbytes: int, alignment: int = 64) -> Memory:
        _check_index(index)
        check_request(nbytes, alignment)
        if nbytes > MEMORY:
            raise MemoryError(f"{Device(self.name, index)} has {MEMORY} bytes")
        block = ctypes.create_string_buffer(nbytes + alignment)
        start = ctypes.addressof(block)
        return Memory(Device(self.name, index), start + -start % alignment, nbytes, block, owned=True)

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
        index = (source if source.device.kind == self.name else target).device.index
        start, to = source.address + source_offset, target.address + target_offset
        chosen = stream or self.current_stream(index)
        if chosen is None:
            ctypes.memmove(to, start, nbytes)
        else:
            self.submit(chosen, partial(ctypes.memmove, to, start, nbytes))

    def create_stream(self, index: int) -> Stream:
        _check_index(index)
        self._streams.append(PyrefStream(Device(self.name, index)))
        return self._streams[-1]

    def free_stream(self, stream: Stream) -> None:
        own = _own(stream)
        if self.current_stream(own.device.index) is own:
            self.set_stream(own.device.index, None)
        self._streams.remove(own)
        own.freed = True
        own.raise_error()

    def set_stream(self, index: int, stream: Stream | None) -> None:
        _check_index(index)
        self._current()[index] = None if stream is None else _own(stream)

    def current_stream(self, index: int) -> Stream | None:
        _check_index(index)
        return self._current().get(index)

    def submit(self, stream: Stream, work: Callable[[], object]) -> None:
        _own(stream).run(work)

    def synchronize(self, index: int, stream: Stream | None = None) -> None:
        _check_index(index)
        for one in self._streams if stream is None else [_own(stream)]:
            if one.device.index == index:
                one.raise_error()

    def synchronize_streams(self, before: Stream, after: Stream) -> None:
        _own(before)
        _own(after)

    def _current(self) -> dict[int, PyrefStream | None]:
        if not hasattr(self._local, "streams"):
            self._local.streams = {}
        streams: dict[int, PyrefStream | None] = self._local.streams
        return streams


api = PyrefAPI()


def _own(stream: Stream) -> PyrefStream:
    if not isinstance(stream, PyrefStream):
        raise DeviceError(f"{stream!r} is no stream of pyref")
    if stream.freed:
        raise DeviceError("the stream was freed")
    return stream


def _check_index(index: int) -> None:
    if not 0 <= index < COUNT:
        raise DeviceError(f"there is no {Device('pyref', index)}; there are {COUNT}")
