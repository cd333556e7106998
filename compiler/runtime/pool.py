"""The thread pool of this process, and how many threads its parallel loops use.

Kernels that are built or loaded here share one pool; a shared object that was exported has one of its own,
which the settings reach as well. The pool's code is never unloaded: its threads outlive every kernel.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from functools import lru_cache

from .objects import load_objects

PARALLEL = "tilewright_parallel"
SET_THREADS = "tilewright_set_num_threads"
SET_SPIN = "tilewright_set_spin"
START_THREADS = "tilewright_start_threads"

_MOST = (1 << 63) - 1

_lock = threading.Lock()
_setters: list[Callable[[int], None]] = []
_given: int | None = None
#: What must not be unloaded, whatever the interpreter does at its end: a reference that nobody gives back.
_kept: list[object] = []


def set_num_threads(n: int | None) -> None:
    """At most `n` threads, the calling one included, run the parallel loops of a call; a kernel uses no more
    than the `num-threads` of its target either way. None: as many as that, which is the default unless the
    environment variable TILEWRIGHT_NUM_THREADS says otherwise when the first parallel kernel runs.

    It counts for the whole process, from the next call on. Results do not depend on it. Raises ValueError for
    a number below 1.
    """
    global _given
    if n is not None and (type(n) is not int or n < 1):
        raise ValueError(f"set_num_threads takes an integer of at least 1 or None, got {n!r}")
    with _lock:
        _given = 0 if n is None else n
        for setter in _setters:
            setter(_in_pool(_given))


def num_threads() -> int | None:
    """The most threads of a call, as set or as TILEWRIGHT_NUM_THREADS says; None: as its target says."""
    if _given is not None:
        return _given or None
    word = os.environ.get("TILEWRIGHT_NUM_THREADS", "")
    return int(word) if word.isdecimal() and int(word) > 0 else None


def parallel_symbols() -> dict[str, int]:
    """What kernels with parallel loops call, by name, with its address. 10 ms the first time."""
    return {PARALLEL: _pool()[PARALLEL]}


def run_parallel(body: Callable[[int, int, int], None], n: int, threads: int) -> None:
    """Runs body(begin, end, thread) over pieces of range(n) on the pool's threads; for tests and for trying
    out, since Python's own lock lets one thread at a time into such a body.
    """

    def call(begin: int, end: int, thread: int, _: int | None) -> None:
        body(begin, end, thread)

    _function(_BODY, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(_BODY(call), None, n, threads)


def start_threads(n: int) -> int:
    """Starts what is missing of the threads for calls that use `n`, the calling one included, rather than at
    the first such call; how many there are then: fewer where the system gives no more, 0 while a call runs.
    """
    start: Callable[[int], int] = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(_pool()[START_THREADS])
    return start(n)


def set_spin(microseconds: int) -> None:
    """How long a thread that has nothing to do looks for more before it sleeps; a sleeping one takes some 30
    microseconds to come back. 1000 is the default; TILEWRIGHT_SPIN_US is the environment's word for it.
    """
    ctypes.CFUNCTYPE(None, ctypes.c_int64)(_pool()[SET_SPIN])(microseconds)


def obey(set_threads: Callable[[int], None]) -> None:
    """Tells a pool, through its own function, of the settings now and later."""
    with _lock:
        _setters.append(set_threads)
        if _given is not None:
            set_threads(_in_pool(_given))


def _in_pool(given: int) -> int:
    """The number as the pool's 64 bits hold it: more threads than that are as many as there are."""
    return min(given, _MOST)


_BODY = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)


def _function(*arguments: type) -> Callable[..., None]:
    return ctypes.CFUNCTYPE(None, *arguments)(_pool()[PARALLEL])


@lru_cache(maxsize=1)
def _pool() -> dict[str, int]:
    with _lock_of_loading:
        if not _addresses:
            _addresses.update(_load())
            obey(ctypes.CFUNCTYPE(None, ctypes.c_int64)(_addresses[SET_THREADS]))
    return _addresses


_addresses: dict[str, int] = {}
_lock_of_loading = threading.Lock()


def _load() -> dict[str, int]:
    from ..codegen.llvm.pool import FUNCTIONS, pool_object

    addresses, keep = load_objects([pool_object()], FUNCTIONS, libraries=True)
    keep_for_ever(keep)
    return addresses


def keep_for_ever(code: object) -> None:
    """Machine code that threads may be in until the process ends."""
    _kept.append(code)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(code))
