"""Schedules that users ask to be tried ahead of all others."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import NotReplayable, SuggestionRefused
from .placing import Misplaced, Placed, place, why_not
from .space import SpaceSketch, TuningSpace

if TYPE_CHECKING:
    from ..compiler.schedule import Trace
    from .record import TuningRecord
    from .task import Replayed, TuningTask

__all__ = ["SUGGESTED", "TRANSFERRED", "Suggestions", "suggestion_json", "suggestions_of"]

SUGGESTED = "suggested"
"""What stands for the sketch of a schedule that is no point of the space; and the origin of all of them."""

TRANSFERRED = "transferred"
"""The origin of points that are like what was fast for related workloads."""

_INT_BOUND = 1 << 63


@dataclass(frozen=True, slots=True, eq=False)
class Suggestions:
    """What users suggested: points of the space, and schedules outside of it."""

    points: tuple[Placed, ...] = ()
    outside: tuple[Replayed, ...] = ()


def suggestion_json(suggestion: Trace | TuningRecord | Mapping[str, Any]) -> dict[str, Any]:
    """A suggestion as jobs store it: a trace's JSON (`version`, `steps`), or `{"sketch": …, "knobs": …}`.
    Raises TypeError for anything else."""
    if isinstance(suggestion, Mapping):
        return dict(suggestion)
    trace = getattr(suggestion, "trace", suggestion)
    if hasattr(trace, "to_json"):
        return dict(trace.to_json())
    raise TypeError(
        "a suggestion is a Trace, a TuningRecord with a trace, a trace's JSON, or "
        f'{{"sketch": name, "knobs": {{name: value}}}}, not {type(suggestion).__name__}'
    )


def suggestions_of(task: TuningTask, suggested: Sequence[Mapping[str, Any]]) -> Suggestions:
    """What these suggestions (as `suggestion_json` gives them) are in the task's space. A trace that is none
    of its points is tried all the same if it replays on the program; knob values must be those of a legal
    point. Raises SuggestionRefused, which says what is wrong and with which of them."""
    points: list[Placed] = []
    outside: list[Replayed] = []
    for number, one in enumerate(suggested):
        if "steps" not in one:
            points.append(_point(task.space, one, number))
            continue
        found = place(one, task.space)
        if isinstance(found, Placed):
            points.append(found)
        else:
            outside.append(_outside(task, one, number, found))
    return Suggestions(tuple(points), tuple(outside))


def _outside(task: TuningTask, trace: Mapping[str, Any], number: int, why: Misplaced) -> Replayed:
    if task.replay is None:
        raise SuggestionRefused(number, f"it is no point of the search space: {why}")
    try:
        return task.replay(trace)
    except NotReplayable as error:
        raise SuggestionRefused(number, str(error)) from error


def _point(space: TuningSpace, said: Mapping[str, Any], number: int) -> Placed:
    if not {"knobs"} <= said.keys() <= {"sketch", "knobs"} or not isinstance(said["knobs"], Mapping):
        shown = json.dumps(sorted(map(str, said)))
        raise SuggestionRefused(
            number,
            f"it is neither a trace (`version`, `steps`) nor `sketch` and `knobs`; its keys are {shown}",
        )
    sketch, knobs = _sketch(space, said.get("sketch"), number), said["knobs"]
    names = [knob.name for knob in sketch.columns.knobs]
    for name in knobs:
        if name not in names:
            raise SuggestionRefused(
                number,
                f"sketch {sketch.name!r} has no knob {name!r}; its knobs are {', '.join(names) or 'none'}",
            )
    for name in names:
        if type(knobs.get(name)) is not int:
            got = f"not {knobs[name]!r}" if name in knobs else "and has none"
            raise SuggestionRefused(
                number, f"knob {name!r} of sketch {sketch.name!r} needs an integer, {got}"
            )
        if not -_INT_BOUND <= knobs[name] < _INT_BOUND:
            raise SuggestionRefused(
                number,
                f"knob {name!r} of sketch {sketch.name!r} needs an integer of 64 bits, not {knobs[name]}",
            )
    row = tuple(int(knobs[name]) for name in names)
    if (wrong := why_not(sketch, np.array(row, dtype=np.int64))) is not None:
        raise SuggestionRefused(number, str(wrong))
    return Placed(sketch.name, row)


def _sketch(space: TuningSpace, name: Any, number: int) -> SpaceSketch:
    by_name = {sketch.name: sketch for sketch in space.sketches}
    if name is None and len(by_name) == 1:
        (only,) = by_name.values()
        return only
    if name not in by_name:
        known = ", ".join(map(repr, by_name))
        said = "it names no sketch" if name is None else f"there is no sketch {name!r}"
        raise SuggestionRefused(number, f"{said}; the sketches are {known}")
    return by_name[name]
