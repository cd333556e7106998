"""Schedules seen as points of a sketch: which values of its knobs make them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..schedule import Trace
from ..schedule.steps import STEPS

_SAMPLES = frozenset(("sample_categorical", "sample_perfect_tile"))


@dataclass(frozen=True, slots=True)
class Decisions:
    """`knobs`: name -> value, of every knob that a step of the sketch uses. `exact`: with them the sketch's
    trace is that trace; else some number beside the knobs differs, or a knob stands for two values."""

    knobs: Mapping[str, int]
    exact: bool


def decisions(sketch: Trace, trace: Mapping[str, Any]) -> Decisions | None:
    """What the knobs of a sketch's trace were in `trace` (the JSON form of a resolved one), whatever their
    domains. None where its steps are others than the sketch's, or it is no trace."""
    wanted = [i.to_json(hints=False) for i in sketch.instructions if i.name not in _SAMPLES]
    steps = trace.get("steps")
    if not isinstance(steps, list) or len(steps) != len(wanted):
        return None
    found: dict[str, int] = {}
    exact = True
    for ours, theirs in zip(wanted, steps, strict=True):
        if not isinstance(theirs, dict) or theirs.get("do") != ours["do"]:
            return None
        kinds = STEPS[ours["do"]].args
        for key in (ours.keys() | theirs.keys()) - {"hints"}:
            if kinds.get(key) == "factors":
                same = _bind(found, ours.get(key), theirs.get(key))
                if same is None:
                    return None
                exact &= same
            else:
                exact &= ours.get(key) == theirs.get(key)
    return Decisions(found, exact)


def _bind(found: dict[str, int], ours: object, theirs: object) -> bool | None:
    """Take up the values that stand where our factors name knobs; whether all else is the same. None where
    they do not stand side by side."""
    if not isinstance(ours, Sequence) or not isinstance(theirs, Sequence) or len(ours) != len(theirs):
        return None
    same = True
    for a, b in zip(ours, theirs, strict=True):
        if isinstance(a, str):
            if type(b) is not int:
                return None
            same &= found.setdefault(a, b) == b
        else:
            same &= type(a) is type(b) and a == b
    return same
