"""Index maps: functions of indices that people write, as polynomials, with the proof that no two indices meet
and the way back."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arith import Atom, Poly, Var, evaluate, floor_div, lower, poly, substitute, upper
from .index_digits import Digit, all_digits, digits_of, spell_digit
from .index_expr import (
    MAX_NUMBER,
    Index,
    MapError,
    MapFunction,
    Plain,
    function_of,
    names_for,
    operand,
    plain_of,
    spell,
)

#: Points of a map that are tried one by one where nothing is proved.
MAX_POINTS = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class IndexMap:
    """A map that was proved one to one from the box of its inputs into the box `shape`.

    digits: for each output its digits with their weights, the lowest first; None where the map is no
    rearrangement of digits, so that its way back is not known and it fills its box.
    """

    inputs: tuple[Var, ...]
    outputs: tuple[Poly, ...]
    shape: tuple[Poly, ...]
    digits: tuple[tuple[tuple[int, Digit], ...], ...] | None

    def at(self, indices: Sequence[Poly]) -> tuple[Poly, ...]:
        """Where an element goes."""
        m: dict[Atom, Poly] = dict(zip(self.inputs, indices, strict=True))
        return tuple(substitute(o, m) for o in self.outputs)

    def back(self, outputs: Sequence[Poly]) -> tuple[Poly, ...]:
        """Where an element comes from; past the end of an input for one that comes from nowhere."""
        assert self.digits is not None
        found = [poly(0) for _ in self.inputs]
        for digits, n in zip(self.digits, outputs, strict=True):
            for position, (weight, d) in enumerate(digits):
                part = floor_div(n, weight)
                if position < len(digits) - 1:
                    part = part - floor_div(part, d.size) * d.size
                found[d.input] = found[d.input] + part * d.low
        return tuple(found)

    @property
    def is_onto(self) -> bool:
        """Whether every element of the box is one that comes from somewhere."""
        if self.digits is None:
            return True
        tops = [d for digits in self.digits for _, d in digits if d.is_top]
        return all(self.inputs[d.input].extent == d.size * d.low for d in tops)

    def plain(self) -> Plain:
        """The outputs as plain values."""
        number: dict[Atom, int] = {v: n for n, v in enumerate(self.inputs)}
        return tuple(plain_of(o, number) for o in self.outputs)


def index_map(function: MapFunction, extents: Sequence[Poly]) -> IndexMap:
    """The map that the function is on indices below `extents`. Raises MapError when it is none, or when two
    indices may meet, or when some of what lies between the images belongs to none: only the last part of an
    input may be short."""
    if not callable(function):
        raise MapError(f"an index map is a function of indices, got {function!r}")
    inputs = tuple(Var(n, e) for n, e in zip(names_for(len(extents)), extents, strict=True))
    arguments = [Index(poly(v)) for v in inputs]
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError:
        raise MapError(f"the index map does not take {len(inputs)} indices") from None
    answer = function(*arguments)
    if not isinstance(answer, tuple | list) or not answer:
        raise MapError(f"an index map answers a list of indices, got {answer!r}")
    outputs = _as_in_a_trace(inputs, [operand(o, "the output") for o in answer])
    digits = digits_of(inputs, outputs)
    return _tried(inputs, outputs) if digits is None else _proved(inputs, outputs, digits)


def _as_in_a_trace(inputs: Sequence[Var], outputs: Sequence[Poly]) -> tuple[Poly, ...]:
    """The outputs with their terms in the order in which a trace has them: what is proved of an index may
    depend on it, and a replayed trace makes the same program."""
    number: dict[Atom, int] = {v: n for n, v in enumerate(inputs)}
    plain = tuple(plain_of(o, number) for o in outputs)
    return tuple(operand(o, "the output") for o in function_of(plain)(*(Index(poly(v)) for v in inputs)))


def _proved(
    inputs: tuple[Var, ...], outputs: tuple[Poly, ...], digits: list[list[tuple[int, Digit]]]
) -> IndexMap:
    """A map whose outputs are numbers in mixed radix, each digit of the inputs in one of them."""
    used = [(d.input, d.low) for output in digits for _, d in output]
    for v in range(len(inputs)):
        for d in all_digits(inputs, outputs, v) or ():
            if used.count((v, d.low)) != 1 and d.size.const != 1:
                lost = "lost" if (v, d.low) not in used else "kept twice"
                raise MapError(f"the index map is not one to one: {spell_digit(inputs, d)} is {lost}")
    shape: list[Poly] = []
    for o, output in zip(outputs, digits, strict=True):
        reached = poly(1)
        for weight, d in output:
            if reached != weight:
                raise MapError(f"the index map is not one to one onto a box: {spell(o)} leaves gaps or meets")
            reached = d.size * weight
        shape.append(reached)
    return IndexMap(inputs, outputs, tuple(shape), tuple(tuple(output) for output in digits))


def _tried(inputs: tuple[Var, ...], outputs: tuple[Poly, ...]) -> IndexMap:
    """A map that is no rearrangement of digits, tried on every index: for each group of inputs that share
    outputs, it must fill its box."""
    shape: dict[int, int] = {}
    left = set(range(len(outputs)))
    inside: set[Var] = set()
    while left:
        group = {min(left)}
        while True:
            used = {v for n in group for v in outputs[n].vars()}
            wider = {n for n in left if outputs[n].vars() & used} | group
            if wider == group:
                break
            group = wider
        left -= group
        inside |= used
        shape |= _try_group(sorted(used), [(n, outputs[n]) for n in sorted(group)])
    lost = [v.name for v in inputs if v not in inside and v.extent.const != 1]
    if lost:
        raise MapError(f"the index map is not one to one: {lost[0]} is lost")
    return IndexMap(inputs, outputs, tuple(poly(shape[n]) for n in range(len(outputs))), None)


def _try_group(variables: Sequence[Var], outputs: Sequence[tuple[int, Poly]]) -> dict[int, int]:
    sizes = [v.extent.const for v in variables]
    text = ", ".join(spell(o) for _, o in outputs)
    points = 1
    for s in sizes:
        points *= s if s is not None else MAX_POINTS + 1
    if points > MAX_POINTS:
        raise MapError(f"({text}) could not be proved one to one; write it in several steps")
    if any((lower(o).const or 0) < -MAX_NUMBER or (upper(o).const or 0) > MAX_NUMBER for _, o in outputs):
        raise MapError(f"({text}) is larger than 2**31")
    grid = np.indices([s or 1 for s in sizes], dtype=np.int64).reshape(len(sizes), points)
    values: dict[Atom, Any] = dict(zip(variables, grid, strict=True))
    found = [np.broadcast_to(np.asarray(evaluate(o, values)), (points,)) for _, o in outputs]
    if any(int(f.min()) < 0 for f in found):
        raise MapError(f"({text}) goes below 0")
    shape = [int(f.max()) + 1 for f in found]
    flat, box = np.zeros(points, np.int64), 1
    for f, s in zip(found, shape, strict=True):
        flat, box = flat * s + f, box * s
        if box > MAX_NUMBER:
            raise MapError(f"({text}) leaves gaps in its box")
    if len(np.unique(flat)) < points:
        raise MapError(f"the index map is not one to one: two indices meet in ({text})")
    if box != points:
        gaps = f"({text}) leaves {box - points} of {box} elements of its box without an index"
        raise MapError(f"{gaps}; fuse and split in two steps, so that only tails are padded")
    return {n: s for (n, _), s in zip(outputs, shape, strict=True)}
