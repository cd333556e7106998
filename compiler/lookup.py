"""Looking a schedule up: the best-known one of a key, or where that is allowed, one that may do for it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .codegen.version import CODEGEN_VERSION
from .ir import PrimFunc, VerifyError, from_json, workload_key
from .ir.structure import structure
from .schedule import Schedule, ScheduleError, Trace, TraceError
from .schedule_source import ALLOWED, KnownSchedule, NearbySchedule, ScheduleSource
from .target import Target, TargetError
from .target.family import why_not_family

NEARBY = 32
"""So many schedules for other targets and hardware, and so many of other workloads, are looked at."""

APART = 1.0
"""A schedule of a related workload is taken over where no extent differs by more than a factor of two: the
log2 of the largest ratio. What is fast for eight rows says nothing about two thousand."""

UNREADABLE = (ScheduleError, TraceError, json.JSONDecodeError, RecursionError)
"""What a trace raises that does not apply, or is none."""


@dataclass(frozen=True, slots=True)
class Found:
    """A schedule that applies to the program, with how it was found; `record`: what it was made of."""

    schedule: Schedule
    kind: str
    reason: str
    record: KnownSchedule


@dataclass(slots=True)
class Misses:
    """Why what was near did not do, each once."""

    reasons: dict[str, None] = field(default_factory=dict)

    def note(self, near: NearbySchedule, why: str) -> None:
        self.reasons.setdefault(f"trial {near.schedule.trial}: {why}")

    def __str__(self) -> str:
        shown = list(self.reasons)[:4]
        more = f"; and {len(self.reasons) - 4} more" if len(self.reasons) > 4 else ""
        return "; ".join(shown) + more


def check_allowed(allow: Sequence[str]) -> tuple[str, ...]:
    """The kinds, once each. Raises ValueError naming those that may be allowed."""
    if isinstance(allow, str):
        raise ValueError(f"allow is a sequence of {' and '.join(ALLOWED)}, not the string {allow!r}")
    for word in allow:
        if word not in ALLOWED:
            raise ValueError(f"allow: {word!r} is none of {', '.join(ALLOWED)}")
    return tuple(kind for kind in ALLOWED if kind in allow)


def near(
    source: ScheduleSource,
    func: PrimFunc,
    target: Target,
    hardware: str,
    facts: Mapping[str, Any],
    allow: Sequence[str],
    misses: Misses,
) -> Iterator[Found]:
    """Schedules that are best-known for other keys and apply here, the best choice first: those of the same
    family, then those that can be transferred, from other machines and targets, and from related workloads.
    Whoever takes one builds it: one that has no code leaves its place to the next.

    Those that do not apply are noted in `misses`. Raises ConnectionError."""
    if not allow:
        return
    key, (alike, extents) = workload_key(func), structure(func)
    offered = [one for one in source.nearby(key, alike, NEARBY) if not _is(one, key, target.key, hardware)]
    own = [one for one in offered if one.schedule.workload == key]
    strangers = []
    for one in own:
        known, its = _target_of(one), _facts_of(one)
        if known is None or its is None:
            misses.note(one, "its target or hardware is not read by this version")
        elif (why := why_not_family(known, its, target, facts)) is not None:
            misses.note(one, why)
            strangers.append((one, known, why))
        elif "same_family" in allow:
            where = f"hardware {one.schedule.hardware[:12]}, target {known}"
            said = f"measured by trial {one.schedule.trial} for {where}: of the family of this machine"
            yield from _applied(one, func, "same_family", said, misses)
    if "transferred" not in allow:
        return
    for one, known, why in strangers:
        if known.math == target.math and known.kind == target.kind:
            said = f"measured by trial {one.schedule.trial} elsewhere, where {why}; applied here, not timed"
            yield from _applied(one, func, "transferred", said, misses)
    related = [one for one in offered if one.schedule.workload != key]
    yield from _related(related, func, extents, target, misses)


def newer(version: str) -> bool:
    """Whether a record was made by a later code generator than this, whose traces this one may not read."""
    return version.isdecimal() and CODEGEN_VERSION.isdecimal() and int(version) > int(CODEGEN_VERSION)


def apply(trace: str, func: PrimFunc) -> Schedule:
    """The schedule of a stored trace. Raises one of UNREADABLE."""
    return Trace.from_json(json.loads(trace)).apply(func)


def _is(one: NearbySchedule, workload: str, target: str, hardware: str) -> bool:
    found = one.schedule
    return (found.workload, found.target, found.hardware) == (workload, target, hardware)


def _applied(one: NearbySchedule, func: PrimFunc, kind: str, reason: str, misses: Misses) -> Iterator[Found]:
    try:
        yield Found(apply(one.schedule.trace, func), kind, reason, one.schedule)
    except UNREADABLE as error:
        misses.note(one, f"does not apply: {_first_line(error)}")


def _related(
    offered: Sequence[NearbySchedule],
    func: PrimFunc,
    extents: tuple[int, ...],
    target: Target,
    misses: Misses,
) -> Iterator[Found]:
    """Of workloads that differ in their extents alone, the nearest first."""
    ranked = []
    for one in offered:
        known, theirs = _target_of(one), _extents_of(one)
        if known is None or theirs is None or len(theirs) != len(extents):
            misses.note(one, "its workload or target is not read by this version")
        elif (known.kind, known.math) != (target.kind, target.math):
            misses.note(one, "its target computes otherwise")
        elif (apart := _apart(extents, theirs)) > APART:
            misses.note(one, f"an extent differs by a factor of {2**apart:.3g}, more than {2**APART:g}")
        else:
            total = sum(abs(math.log2(max(a, 1) / max(b, 1))) for a, b in zip(extents, theirs, strict=True))
            ranked.append((known.key != target.key, total, one.schedule.seconds, one, theirs))
    for _, _, _, one, theirs in sorted(ranked, key=lambda entry: entry[:3]):
        trace = _moved(one.schedule.trace, func, target)
        other = dict.fromkeys(f"{b} for {a}" for a, b in zip(extents, theirs, strict=True) if a != b)
        said = f"measured by trial {one.schedule.trial} for a related workload ({', '.join(other)})"
        said += "; applied here, not timed"
        if trace is not None:
            try:
                yield Found(trace.apply(func), "transferred", said, one.schedule)
            except UNREADABLE as error:
                misses.note(one, f"does not apply: {_first_line(error)}")
        else:
            yield from _applied(one, func, "transferred", said, misses)


def _moved(text: str, func: PrimFunc, target: Target) -> Trace | None:
    """The point of the program's own space that is nearest to a trace of another one; None where the trace is
    of no sketch of it."""
    from .space import space_of
    from .space.nearest import nearest_legal

    try:
        said = json.loads(text)
        Trace.from_json(said)
        space = space_of(func, target)
    except UNREADABLE:
        return None
    for sketch in space.sketches:
        found = sketch.decisions(said)
        if found is None:
            continue
        knobs = sketch.columns.knobs
        values = [found.knobs.get(knob.name, int(min(knob.domain))) for knob in knobs]
        row = nearest_legal(sketch.columns, values, np.random.default_rng(0))
        if row is not None:
            return sketch.resolve(row)
    return None


def _apart(extents: Sequence[int], theirs: Sequence[int]) -> float:
    ratios = (max(a, 1) / max(b, 1) for a, b in zip(extents, theirs, strict=True))
    return max((abs(math.log2(ratio)) for ratio in ratios), default=0.0)


def _target_of(one: NearbySchedule) -> Target | None:
    try:
        return Target.parse(json.loads(one.description))
    except (TargetError, ValueError, RecursionError):
        return None


def _facts_of(one: NearbySchedule) -> Mapping[str, Any] | None:
    try:
        facts = json.loads(one.facts)
    except (ValueError, RecursionError):
        return None
    return facts if isinstance(facts, dict) else None


def _extents_of(one: NearbySchedule) -> tuple[int, ...] | None:
    try:
        return structure(from_json(json.loads(one.program)))[1]
    except (VerifyError, ValueError, RecursionError):
        return None


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0]
