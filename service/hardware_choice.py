"""Which kind of hardware a job is measured on, and what a job waits for when no worker has it."""

from __future__ import annotations

from collections.abc import Sequence

from ..db.fleet_records import Worker
from .errors import AmbiguousHardware, Fault

ATTACHED_STATES = ("online", "busy")
NO_WORKER = "no worker attached"


def attached(workers: Sequence[Worker]) -> dict[str, list[str]]:
    """The hardware keys that can measure now, each with the names of its workers."""
    kinds: dict[str, list[str]] = {}
    for worker in workers:
        if worker.state in ATTACHED_STATES:
            kinds.setdefault(worker.hardware, []).append(worker.name)
    return kinds


def choose(asked: str | None, workers: Sequence[Worker]) -> str | None:
    """The hardware of a new job: the one asked for, the only one attached, or None when there is no worker.

    Raises AmbiguousHardware that lists the kinds when several are attached and none was asked for.
    """
    if asked is not None:
        return asked
    kinds = attached(workers)
    if len(kinds) <= 1:
        return next(iter(kinds), None)
    detail = f"workers of {len(kinds)} kinds are attached; name one as hardware: {listed(kinds)}"
    raise AmbiguousHardware(detail, (Fault(detail, pointer="/hardware"),))


def waits_for(hardware: str | None, workers: Sequence[Worker]) -> str | None:
    """What a job waits for, or None when a worker can measure for it."""
    kinds = attached(workers)
    if hardware is None:
        if not kinds:
            return NO_WORKER
        if len(kinds) == 1:
            return None
        return f"workers of {len(kinds)} kinds are attached and the job names none: {listed(kinds)}"
    if hardware in kinds:
        return None
    absent = [f"{w.name} is {w.state}" for w in workers if w.hardware == hardware]
    others = f"; attached are {listed(kinds)}" if kinds else "; no worker is attached"
    return f"no worker for hardware {hardware}" + (f" ({', '.join(absent)})" if absent else others)


def listed(kinds: dict[str, list[str]]) -> str:
    return ", ".join(f"{key} ({', '.join(names)})" for key, names in sorted(kinds.items()))
