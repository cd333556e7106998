"""A workload to tune beside others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from ..compiler.ir import PrimFunc, workload_key
from ..compiler.space import KnobConstraint, SpaceFunction
from ..compiler.target import Target

__all__ = ["Entry", "WeightedTask", "named_tasks"]

PATIENCE = 64
"""Trials of a task in a row without a new best, after which it has converged, where nothing else is said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedTask:
    """A workload to tune beside others, which counts by its weight (how often it is called).

    target: None for that of all. name: None for the program's. space, constraints: see `tune`. trials,
    seconds, target_seconds, patience: limits of this task alone; its seconds are those of its own turns.
    """

    func: PrimFunc
    weight: float = 1.0
    target: str | Mapping[str, Any] | Target | None = None
    name: str | None = None
    space: SpaceFunction | None = None
    constraints: Sequence[KnobConstraint] = ()
    trials: int | None = None
    seconds: float | None = None
    target_seconds: float | None = None
    patience: int | None = PATIENCE


Entry = WeightedTask | tuple[PrimFunc, float] | tuple[PrimFunc, float, str | Mapping[str, Any] | Target]


def named_tasks(
    entries: Sequence[Entry], target: str | Mapping[str, Any] | Target
) -> dict[str, WeightedTask]:
    """The tasks by name, each with its target: of equal names the second becomes `name (2)`, and so on.

    Raises ValueError for what is no task, or is one twice, and TargetError.
    """
    if not entries:
        raise ValueError("there is no task to tune")
    named: dict[str, WeightedTask] = {}
    places: dict[tuple[str, str], str] = {}
    for entry in entries:
        task = _task(entry)
        own = Target.parse(target if task.target is None else task.target)
        base = task.name or task.func.name
        name = _free_name(base, named)
        if task.space is None:
            other = places.setdefault((workload_key(task.func), own.key), name)
            if other != name:
                raise ValueError(
                    f"tasks {other!r} and {name!r} are one workload: give it once, with both weights added"
                )
        named[name] = replace(task, target=own)
    return named


def _free_name(base: str, taken: Mapping[str, WeightedTask]) -> str:
    """`base`, or else `base (2)` and so on: a task may also be called so by its user."""
    return next(name for name in _names(base) if name not in taken)


def _names(base: str) -> Iterator[str]:
    yield base
    yield from (f"{base} ({number})" for number in count(2))


def _task(entry: Entry) -> WeightedTask:
    if isinstance(entry, WeightedTask) and isinstance(entry.func, PrimFunc):
        return entry
    if isinstance(entry, tuple) and len(entry) in (2, 3) and isinstance(entry[0], PrimFunc):
        return WeightedTask(func=entry[0], weight=entry[1], target=entry[2] if len(entry) == 3 else None)
    raise ValueError(f"a task is (func, weight[, target]) or WeightedTask(func=…), not {entry!r:.80}")
