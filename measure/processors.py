"""Which processors a candidate may build on while another one is timed."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["allowed", "confine", "leave", "spare"]

_PROC = Path("/proc")
_CPUS = Path("/sys/devices/system/cpu")
# Where /proc/PID/stat says which processor a thread last ran on, counted behind its name (see proc(5)).
_PROCESSOR_FIELD = 36


def spare(busy: int, threads: int) -> frozenset[int]:
    """Processors beside those on which the process `busy` runs its `threads` threads, and which share no core
    with them; empty where there are none, or where the system does not say."""
    everywhere = allowed()
    if len(everywhere) <= threads:
        return frozenset()
    taken: set[int] = set()
    for processor in _used_by(busy):
        taken |= _siblings(processor)
    return everywhere - taken


def allowed() -> frozenset[int]:
    """Where the calling thread may run; empty where the system does not say."""
    return frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else frozenset()


def confine(to: frozenset[int]) -> frozenset[int]:
    """Keeps the calling thread, and those it starts, on these processors (empty: where it is); where it might
    run before."""
    before = allowed()
    if to and to != before:
        os.sched_setaffinity(0, to)
    return before


def leave(before: frozenset[int]) -> None:
    """Lets all threads of this process run on these processors again."""
    for thread in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(thread), before)


def _used_by(process: int) -> set[int]:
    """The processors that the threads of a process last ran on."""
    used = set()
    for stat in (_PROC / str(process) / "task").glob("*/stat"):
        try:
            used.add(int(stat.read_text().rpartition(")")[2].split()[_PROCESSOR_FIELD]))
        except (OSError, IndexError, ValueError):
            continue  # the thread has ended
    return used


def _siblings(processor: int) -> set[int]:
    """The processors that share a core with one, itself included."""
    path = _CPUS / f"cpu{processor}" / "topology" / "thread_siblings_list"
    try:
        words = path.read_text().strip().split(",")
    except OSError:
        return {processor}
    found = {processor}
    for word in words:
        low, _, high = word.partition("-")
        found.update(range(int(low), int(high or low) + 1))
    return found
