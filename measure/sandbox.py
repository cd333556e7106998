"""What a forked child does to itself before it runs a candidate: its descriptors, its limits, its privileges,
what it may reach.

Nothing here can be undone by the child. What must be done from outside (time limits, killing, reaping) is the
watcher's part.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import math
import os
import resource
import signal
import sys

from ..compiler.runtime.pool import start_threads
from . import landlock
from .machine import memory_of_this_machine
from .messages import Limits

RESULT_DESCRIPTOR = 3
"""Where the child writes its messages; 0 is /dev/null, 1 and 2 are the pipe of its last words."""

# The overflow user and group of Linux, which distributions call nobody.
_NOBODY = 65534
_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
# Beyond the time limits that the watcher keeps, in case the watcher is gone.
_SPARE_CPU_SECONDS = 5


class Orphaned(Exception):
    """The fork server died while its child was being set up."""


def enter(results: int, last_words: int, limits: Limits, parent: int, threads: int = 1) -> None:
    """Confines the calling process, which must be a fresh fork of the single-threaded process `parent`. It
    starts the threads that parallel kernels will need, since none can be started later.

    `results` and `last_words` are the write ends of two pipes; every other descriptor is closed. Raises
    Orphaned.
    """
    os.setpgid(0, 0)
    _volunteer_for_the_oom_killer()
    _set_descriptors(results, last_words)
    faulthandler.enable(file=2, all_threads=False)
    if os.geteuid() == 0:
        _drop_root()
    _set_limits(limits, threads)
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        # After the change of user, which clears it.
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if os.getppid() != parent:
            raise Orphaned(parent)
        landlock.restrict()
        landlock.refuse_calls()
    if threads > 1:
        start_threads(threads)
    _limit(resource.RLIMIT_NPROC, 0)


def _volunteer_for_the_oom_killer() -> None:
    """When the machine runs out of memory the candidate goes, not the worker."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


def _set_descriptors(results: int, last_words: int) -> None:
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(last_words, 1)
    os.dup2(last_words, 2)
    os.dup2(results, RESULT_DESCRIPTOR)
    os.closerange(RESULT_DESCRIPTOR + 1, os.sysconf("SC_OPEN_MAX"))


def _drop_root() -> None:
    """Goes on as root where this user does not exist, as in a user namespace that maps root alone."""
    with contextlib.suppress(OSError):
        os.setgroups([])
        os.setresgid(_NOBODY, _NOBODY, _NOBODY)
        os.setresuid(_NOBODY, _NOBODY, _NOBODY)


def _set_limits(limits: Limits, threads: int) -> None:
    cpu = math.ceil(limits.build_seconds + threads * limits.run_seconds) + _SPARE_CPU_SECONDS
    _limit(resource.RLIMIT_CPU, cpu)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit(resource.RLIMIT_AS, address_space() + min(limits.memory_bytes, memory_of_this_machine()))


def allow_memory(more: int) -> None:
    """Lets this process use so many bytes beyond what it uses now, within what it was once allowed."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = address_space() + more
    resource.setrlimit(
        resource.RLIMIT_AS, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard)
    )


def _limit(which: int, value: int) -> None:
    _, hard = resource.getrlimit(which)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (value, value))


def address_space() -> int:
    """Bytes of address space in use: numerical libraries reserve far more than they touch."""
    if sys.platform != "linux":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()
