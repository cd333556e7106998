"""Search spaces that a user writes: a function of a Schedule, and constraints on its knobs."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ..ir import PrimFunc, workload_key
from ..ir.func import fresh
from ..schedule import Schedule
from ..schedule.choose import Enumeration
from .population import ColumnRule, Population
from .sketch import Constraint, SearchSpace, Sketch, points

SpaceFunction = Callable[[Schedule], object]
"""Applies primitives and samplers to a schedule; what it returns does not matter."""

KnobConstraint = Callable[[Mapping[str, NDArray[np.int64]]], object]
"""From knob name -> value (columns of a population, shape (n,)) to whether the configs are allowed."""

#: Structures of one space; each is traced and compiled.
MAX_STRUCTURES = 64


class SpaceError(ValueError):
    """A user's space that is none: what was wrong with it."""


def user_space(
    func: PrimFunc, space: SpaceFunction, constraints: Sequence[KnobConstraint] = ()
) -> SearchSpace:
    """The space of what `space` does to a Schedule of `func`: a sketch for each combination of the structures
    that it samples, with the knobs that it samples left open.

    A constraint gets the knobs as a mapping and answers whether they are allowed, such as
    `lambda knobs: knobs["a"] * knobs["b"] <= 64`; it may also be written for single integers. One that reads
    a knob which a sketch does not have leaves that sketch alone. Raises ScheduleError where a primitive is
    refused, at the user's line; SpaceError for what is no space.
    """
    if not callable(space):
        raise SpaceError(f"space is a function of a Schedule, got {type(space).__name__}")
    if isinstance(constraints, str) or not isinstance(constraints, Sequence):
        raise SpaceError(f"constraints are a list of functions, got {type(constraints).__name__}")
    for c in constraints:
        if not callable(c):
            raise SpaceError(f"a constraint is a function of the knobs, got {type(c).__name__}")
    sketches: list[Sketch] = []
    names: set[str] = set()
    path: tuple[int, ...] | None = ()
    while path is not None:
        if len(sketches) == MAX_STRUCTURES:
            raise SpaceError(
                f"the space samples more than {MAX_STRUCTURES} combinations of structures; "
                "leave numbers to knobs (sample_categorical, sample_perfect_tile)"
            )
        choices = Enumeration(path)
        sch = Schedule(func, choices)
        space(sch)
        name = fresh(", ".join(choices.labels) or _name_of(space), names)
        names.add(name)
        sketches.append(_sketch(sch, name, len(sketches), constraints))
        path = choices.next_path
    _all_used(sketches, constraints)
    return SearchSpace(func, workload_key(func), tuple(sketches), {})


def _sketch(sch: Schedule, name: str, index: int, constraints: Sequence[KnobConstraint]) -> Sketch:
    knobs = tuple(sch.knobs.values())
    rules = [_rule(c, n, [k.name for k in knobs]) for n, c in enumerate(constraints)]
    covered = tuple(Constraint("factors fit the loop", p, 0) for p in sch.constraints)
    main = max((b for _, b in sch.func.blocks()), key=points).name
    return Sketch(
        name,
        sch.func,
        sch.trace,
        knobs,
        covered,
        main,
        index,
        (main,),
        tuple(r for r in rules if r is not None),
    )


def _name_of(f: Callable[..., object]) -> str:
    name = getattr(f, "__name__", type(f).__name__)
    return "space" if name == "<lambda>" else str(name)


class _Knobs(Mapping[str, NDArray[np.int64]]):
    """The columns by name; remembers a name that is none."""

    def __init__(self, names: Sequence[str], columns: Sequence[NDArray[np.int64]]) -> None:
        self._columns = dict(zip(names, map(_read_only, columns), strict=True))
        self.missing: str | None = None

    def __getitem__(self, name: str) -> NDArray[np.int64]:
        if name not in self._columns:
            self.missing = name
            raise KeyError(name)
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def _read_only(column: NDArray[np.int64]) -> NDArray[np.int64]:
    """A view through which a constraint cannot change the configs."""
    view = column.view()
    view.flags.writeable = False
    return view


def _rule(constraint: KnobConstraint, number: int, names: Sequence[str]) -> ColumnRule | None:
    """The constraint over populations; None where it reads a knob that the sketch does not have."""
    name = _name_of(constraint)
    label = f"constraint {number + 1}" if name == "space" else name
    probe = _Knobs(names, [np.ones(2, np.int64) for _ in names])
    try:
        answer = constraint(probe)
    except (ValueError, TypeError):
        # Written for single integers: `and`, `if`, range(…) of a column have no meaning.
        return ColumnRule(label, _one_by_one(constraint, names, label))
    except Exception as error:  # what a user wrote may raise anything
        if isinstance(error, KeyError) and probe.missing is not None:
            return None
        raise _raised(constraint, label, error) from error
    _checked(answer, 2, label)
    return ColumnRule(label, _in_columns(constraint, names, label))


def _in_columns(
    constraint: KnobConstraint, names: Sequence[str], label: str
) -> Callable[[Population], NDArray[np.bool_]]:
    def allowed(population: Population) -> NDArray[np.bool_]:
        try:
            answer = constraint(_Knobs(names, list(population.T)))
        except Exception as error:  # what a user wrote may raise anything
            raise _raised(constraint, label, error) from error
        return _checked(answer, len(population), label)

    return allowed


def _one_by_one(
    constraint: KnobConstraint, names: Sequence[str], label: str
) -> Callable[[Population], NDArray[np.bool_]]:
    def allowed(population: Population) -> NDArray[np.bool_]:
        rows = ({n: int(v) for n, v in zip(names, row, strict=True)} for row in population)
        try:
            return np.array([bool(constraint(row)) for row in rows], np.bool_)  # type: ignore[arg-type]
        except Exception as error:  # what a user wrote may raise anything
            raise _raised(constraint, label, error) from error

    return allowed


def _raised(constraint: KnobConstraint, label: str, error: Exception) -> SpaceError:
    """What a constraint raised, with the user's line: the innermost one of the constraint's own file."""
    code = getattr(constraint, "__code__", None)
    frames = traceback.extract_tb(error.__traceback__)[1:]
    own = [f for f in frames if code is not None and f.filename == code.co_filename] or frames
    at = f" at {os.path.basename(own[-1].filename)}:{own[-1].lineno}" if own else ""
    return SpaceError(f"{label} raised {type(error).__name__}{at}: {error}")


def _checked(answer: object, n: int, label: str) -> NDArray[np.bool_]:
    out = np.asarray(answer)
    if out.dtype != np.bool_ or out.shape not in ((), (n,)):
        raise SpaceError(
            f"{label} must answer a boolean, or one for each config, got {out.dtype} of shape {out.shape}"
        )
    return np.broadcast_to(out, (n,))


def _all_used(sketches: Sequence[Sketch], constraints: Sequence[KnobConstraint]) -> None:
    """A constraint that fits no sketch names a knob that does not exist."""
    if constraints and all(len(s.rules) < len(constraints) for s in sketches):
        for number, c in enumerate(constraints):
            if all(_rule(c, number, [k.name for k in s.knobs]) is None for s in sketches):
                known = sorted({k.name for s in sketches for k in s.knobs})
                raise SpaceError(
                    f"constraint {number + 1} reads a knob that no sketch has; "
                    f"the knobs are {', '.join(known) or 'none'}"
                )
