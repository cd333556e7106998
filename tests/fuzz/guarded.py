"""Arrays that end, or start, at a page without access: a read or write out of bounds kills the process."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

PAGE = 4096
_READ_WRITE, _NONE = 3, 0
_PRIVATE_ANONYMOUS = 0x22

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]

Array = np.ndarray[Any, np.dtype[Any]]


class Guarded:
    """Memory for one array between two pages without access.

    at_end: the array's last byte is the last before the page behind it; else its first byte is the first
    after the page before it. The bytes beside the array are `_FILL`, and `untouched` says whether they still
    are: what lies between the array and the other page is caught that way.
    """

    _FILL = 0x5C

    def __init__(self, array: Array, *, at_end: bool) -> None:
        body = max(1, -(-array.nbytes // PAGE)) * PAGE
        self._size = body + 2 * PAGE
        base = _libc.mmap(None, self._size, _READ_WRITE, _PRIVATE_ANONYMOUS, -1, 0)
        if base in (None, ctypes.c_void_p(-1).value):
            raise MemoryError(f"no memory for {self._size} bytes")
        self._base = int(base)
        self._low = self._base + PAGE
        ctypes.memset(self._low, self._FILL, body)
        for page in (self._base, self._low + body):
            if _libc.mprotect(page, PAGE, _NONE):
                raise OSError(ctypes.get_errno(), "mprotect")
        self._offset = body - array.nbytes if at_end else 0
        memory = (ctypes.c_ubyte * body).from_address(self._low)
        self._bytes = np.frombuffer(memory, np.uint8)
        self.array: Array = np.ndarray(array.shape, array.dtype, memory, self._offset)
        self.array[...] = array

    def poison(self) -> None:
        """Makes the array NaN, or -1, or the largest number."""
        self._bytes[self._offset : self._offset + self.array.nbytes] = 0xFF

    def untouched(self) -> bool:
        """Whether the bytes beside the array are as they were."""
        before, behind = self._bytes[: self._offset], self._bytes[self._offset + self.array.nbytes :]
        return bool((before == self._FILL).all() and (behind == self._FILL).all())

    @staticmethod
    def workspace(nbytes: int) -> Guarded:
        """Poisoned memory as a kernel is given it: aligned to 64 bytes, so that it ends at a page without
        access but for what the alignment leaves."""
        made = Guarded(np.empty(-(-max(1, nbytes) // 64) * 64, np.uint8), at_end=True)
        made.poison()
        return made

    def free(self) -> None:
        """Gives the memory back; the array must not be used any more."""
        _libc.munmap(self._base, self._size)
