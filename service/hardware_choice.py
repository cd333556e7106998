"""Which kind of hardware a job is measured on, and what a job waits for when no worker can measure it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from ..db.fleet_records import Worker, labels_of
from ..db.records import Job
from ..db.words import PRESENT_STATES
from .errors import AmbiguousHardware, Fault

NO_WORKER = "no worker attached"

# A reason is stored with every job that waits, in each of its events and on every page of jobs.
_MOST_WORKERS = 3
_MOST_KINDS = 8
_LONGEST = 300  # characters of one label, or of what is told of a worker behind its name
_COUNTS = re.compile(r" and \d+ more|(?<=^workers of )\d+")


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
    """What a job waits for, or None when a worker can measure for it: what was asked, and what there is.

    It names a few workers, those that are not offline first, however many there are.
    """
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
    return f"{what} ({_few([_absent(w) for w in _reachable_first(fitting)], _MOST_WORKERS)})"


def says_the_same(one: str, other: str) -> bool:
    """Whether two reasons of `waits_for` name the same, whatever they count."""
    return _COUNTS.sub("", one) == _COUNTS.sub("", other)


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
        have = [f"{w.name} has {_labels(w)}" for w in _reachable_first(in_pool)]
        return f"no worker with all the labels {asked}: {_few(have, _MOST_WORKERS, '; ')}"
    return None


def _known(what: str, asked: str, known: set[str]) -> str:
    if not known:
        return f"no {what} are known"
    alike = {each.casefold(): each for each in sorted(known)}
    close = get_close_matches(asked.casefold(), alike, 1, 0.8)
    hint = f"did you mean {alike[close[0]]}? " if close else ""
    return f"{hint}{what} known: {_few([_cut(each) for each in sorted(known)], _MOST_KINDS)}"


def _absent(worker: Worker) -> str:
    return f"{worker.name} is {worker.state}" + (f": {_cut(worker.reason)}" if worker.reason else "")


def _labels(worker: Worker) -> str:
    return _cut(", ".join(sorted(labels_of(worker.labels)))) or "none"


def listed(kinds: dict[str, list[str]]) -> str:
    """The kinds of hardware, each with a few of its workers."""
    each = [f"{key} ({_few(names, _MOST_WORKERS)})" for key, names in sorted(kinds.items())]
    return _few(each, _MOST_KINDS)


def _reachable_first(workers: Iterable[Worker]) -> list[Worker]:
    """In this order otherwise, so that one more that left does not change whom a reason names."""
    return sorted(workers, key=lambda w: w.state == "offline")


def _few(texts: Sequence[str], most: int, between: str = ", ") -> str:
    rest = f" and {len(texts) - most} more" if len(texts) > most else ""
    return between.join(texts[:most]) + rest


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
