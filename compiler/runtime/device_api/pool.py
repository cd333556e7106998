"""Workspaces that a thread uses again instead of asking for new ones."""

import threading
from collections.abc import Callable

from .api import DeviceError, Memory, check_free

PAGE = 4096


class WorkspacePool:
    """Workspaces of the calling thread, in whole pages. What a thread still holds when it ends is dropped."""

    def __init__(self, allocate: Callable[[int, int], Memory], free: Callable[[Memory], None]) -> None:
        """allocate: from a device's index and a number of bytes. free: the other way."""
        self._allocate = allocate
        self._free = free
        self._local = threading.local()

    def take(self, index: int, nbytes: int) -> Memory:
        """The smallest unused workspace that is large enough, or a new one."""
        if nbytes < 0:
            raise DeviceError(f"allocate_workspace: {nbytes} bytes cannot be allocated")
        unused = self._unused
        unused[:] = [m for m in unused if not m.freed]  # by `free`, which is for data space
        fitting = [m for m in unused if m.device.index == index and m.nbytes >= nbytes]
        if fitting:
            memory = min(fitting, key=lambda m: m.nbytes)
            unused.remove(memory)
        else:
            memory = self._allocate(index, max(1, -(-nbytes // PAGE)) * PAGE)
        self._used.add(id(memory))
        return memory

    def give_back(self, memory: Memory) -> None:
        """Make a workspace available to the calling thread's next request."""
        if id(memory) not in self._used:
            check_free(memory)
            raise DeviceError(f"free_workspace: {memory} is no workspace in use by this thread")
        self._used.remove(id(memory))
        check_free(memory)
        self._unused.append(memory)

    def release(self) -> None:
        """Free the unused workspaces of the calling thread."""
        unused = self._unused
        while unused:
            memory = unused.pop()
            if not memory.freed:
                self._free(memory)

    @property
    def _unused(self) -> list[Memory]:
        if not hasattr(self._local, "unused"):
            self._local.unused = []
            self._local.used = set()
        return self._local.unused  # type: ignore[no-any-return]

    @property
    def _used(self) -> set[int]:
        _ = self._unused
        return self._local.used  # type: ignore[no-any-return]
