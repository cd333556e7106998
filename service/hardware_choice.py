"""Which kind of hardware a job is measured on, and what a job waits for when no worker can measure it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from ..db.fleet_records import Worker, labels_of
from ..db.records import Job
from ..db.words import PRESENT_STATES
from .errors import AmbiguousHardware, Fault

NO_WORKER = "no worker attached"
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Needs:
    """What a job asks of a worker; None and no labels: anything will do. Labels are `key=value`."""

    hardware: str | None = None
    pool: str | None = None
    labels: frozenset[str] = frozenset()

    @classmethod
    def of(cls, job: Job) -> Needs:
        return cls(job.hardware, job.pool, labels_of(job.labels))

    def fitting(self, workers: Iterable[Worker]) -> list[Worker]:
        """The workers of its pool that have all its labels, whatever their hardware."""
        return [w for w in workers if self.pool in (None, w.pool) and self.labels <= labels_of(w.labels)]


def attached(workers: Iterable[Worker]) -> dict[str, list[str]]:
    """The hardware keys that can measure now, each with the names of its workers."""
    kinds: dict[str, list[str]] = {}
    for worker in workers:
        if worker.state in PRESENT_STATES:
            kinds.setdefault(worker.hardware, []).append(worker.name)
    return kinds


def choose(needs: Needs, workers: Sequence[Worker]) -> str | None:
    """The hardware of a new job: the one asked for, the only one attached of those that fit, or None when
    there is no worker.

    Raises AmbiguousHardware that lists the kinds when several are attached and none was asked for.
    """
    if needs.hardware is not None:
        return needs.hardware
    kinds = attached(needs.fitting(workers))
    if len(kinds) <= 1:
        return next(iter(kinds), None)
    detail = f"workers of {len(kinds)} kinds are attached; name one as hardware: {listed(kinds)}"
    raise AmbiguousHardware(detail, (Fault(detail, pointer="/hardware"),))


def waits_for(needs: Needs, workers: Sequence[Worker]) -> str | None:
    """What a job waits for, or None when a worker can measure for it: what was asked, and what there is."""
    alike = [w for w in workers if needs.hardware in (None, w.hardware)]
    if needs.hardware is not None and not alike:
        kinds = attached(workers)
        others = f"attached are {listed(kinds)}" if kinds else "no worker is attached"
        return f"no worker for hardware {needs.hardware}; {others}"
    if alike and (misfit := _misfit(needs, alike)) is not None:
        return misfit
    fitting = needs.fitting(alike)
    kinds = attached(fitting)
    if len(kinds) == 1:
        return None
    if kinds:
        return f"workers of {len(kinds)} kinds are attached and the job names none: {listed(kinds)}"
    what = NO_WORKER if needs.hardware is None else f"no worker for hardware {needs.hardware}"
    if not fitting:
        return what
    return f"{what} ({', '.join(_absent(w) for w in fitting)})"


def _misfit(needs: Needs, workers: Sequence[Worker]) -> str | None:
    """Which pool or label no worker has, of those with the right hardware."""
    pools = {w.pool for w in workers if w.pool is not None}
    if needs.pool is not None and needs.pool not in pools:
        return f"no worker in pool {needs.pool}; {_known('pools', needs.pool, pools)}"
    in_pool = [w for w in workers if needs.pool in (None, w.pool)]
    labels = {label for w in in_pool for label in labels_of(w.labels)}
    for label in sorted(needs.labels - labels):
        return f"no worker with label {label}; {_known('labels', label, labels)}"
    if not needs.fitting(in_pool):
        asked = ", ".join(sorted(needs.labels))
        have = "; ".join(f"{w.name} has {', '.join(sorted(labels_of(w.labels))) or 'none'}" for w in in_pool)
        return f"no worker with all the labels {asked}: {have}"
    return None


def _known(what: str, asked: str, known: set[str]) -> str:
    if not known:
        return f"no {what} are known"
    alike = {each.casefold(): each for each in sorted(known)}
    close = get_close_matches(asked.casefold(), alike, 1, 0.8)
    hint = f"did you mean {alike[close[0]]}? " if close else ""
    more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    return f"{hint}{what} known: {', '.join(sorted(known)[:_SHOWN])}{more}"


def _absent(worker: Worker) -> str:
    return f"{worker.name} is {worker.state}" + (f": {worker.reason}" if worker.reason else "")


def listed(kinds: dict[str, list[str]]) -> str:
    return ", ".join(f"{key} ({', '.join(names)})" for key, names in sorted(kinds.items()))
