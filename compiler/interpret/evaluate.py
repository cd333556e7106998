"""Expressions over a box of iteration variables, as whole arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..arith import Poly, Var
from ..ir.expr import Binary, Buffer, Cast, Compare, Const, Expr, InBounds, IndexValue, Load, Select, Unary
from ..ir.rounding import converted
from .approx import Approx, binary, cast, compare, select, unary
from .inputs import Array


@dataclass(frozen=True, slots=True, eq=False)
class Box:
    """Ranges [start, start + size) of variables; each is one dimension of the arrays over the box."""

    vars: tuple[Var, ...]
    starts: tuple[int, ...]
    sizes: tuple[int, ...]

    @property
    def rank(self) -> int:
        return len(self.vars)


Memory = Mapping[Buffer, Approx]


def evaluate(e: Expr, box: Box, memory: Memory, guarded: bool = False) -> Approx:
    """`e` over the box. Dimensions that it does not depend on have size 1. `guarded`: reads may lie out of
    bounds where the value is not used, and then read anything."""
    match e:
        case Const(value, dtype):
            kind = np.float64 if dtype.is_float else dtype.numpy
            return Approx(np.full((1,) * box.rank, value, kind))
        case Load():
            return _load(e, box, memory, guarded)
        case Binary(op, a, b):
            x, y = evaluate(a, box, memory, guarded), evaluate(b, box, memory, guarded)
            return binary(op, e.dtype, x, y)
        case Unary(op, a):
            return unary(op, e.dtype, evaluate(a, box, memory, guarded))
        case Compare(op, a, b) if same_read(a, b):
            # One number: whatever its bound, it is equal to itself, or is no number.
            one = Approx(evaluate(a, box, memory, guarded).value)
            return compare(op, one, one)
        case Compare(op, a, b):
            return compare(op, evaluate(a, box, memory, guarded), evaluate(b, box, memory, guarded))
        case Select(cond, a, b):
            test = evaluate(cond, box, memory, guarded)
            return select(test, evaluate(a, box, memory, True), evaluate(b, box, memory, guarded))
        case InBounds(conditions):
            holds = np.ones((1,) * box.rank, np.bool_)
            for c in conditions:
                holds = holds & (index_array(c, box) < 0)
            return Approx(holds)
        case Cast(dtype, a):
            return cast(a.dtype, dtype, evaluate(a, box, memory, guarded))
        case IndexValue(p, dtype):
            exact = converted(index_array(p, box), dtype)
            return Approx(exact.astype(np.float64) if dtype.is_float else exact)
    raise TypeError(f"not an expression: {e!r}")


def same_read(a: Expr, b: Expr) -> bool:
    """Whether both read one element."""
    return type(a) is type(b) is Load and a.buffer is b.buffer and a.indices == b.indices


def index_array(p: Poly, box: Box) -> Array:
    """A polynomial over the box, in int64."""
    total = np.zeros((1,) * box.rank, np.int64)
    for monomial, coefficient in p.terms.items():
        term = np.full((1,) * box.rank, coefficient, np.int64)
        for a in monomial:
            term = term * _atom(a, box)
        total = total + term
    return total


def _atom(a: object, box: Box) -> Array:
    if type(a) is Var:
        d = box.vars.index(a)
        shape = [1] * box.rank
        shape[d] = box.sizes[d]
        return np.arange(box.starts[d], box.starts[d] + box.sizes[d], dtype=np.int64).reshape(shape)
    x, y = index_array(a.a, box), index_array(a.b, box)  # type: ignore[attr-defined]
    match a.op:  # type: ignore[attr-defined]
        case "floordiv":
            return np.asarray(x // y)
        case "ceildiv":
            return np.asarray(-(-x // y))
        case "min":
            return np.minimum(x, y)
    return np.maximum(x, y)


def _load(e: Load, box: Box, memory: Memory, guarded: bool) -> Approx:
    stored = memory[e.buffer]
    if not stored.value.size:
        # Of a buffer without elements nothing is read: a guard hides it, or the box is empty too.
        return Approx(np.zeros((1,) * box.rank, stored.value.dtype))
    steps = None if guarded else _steps(e.indices, box)
    if steps is None:
        at = _positions(e.indices, box, stored.value.shape)
        return Approx(stored.value[at], None if stored.error is None else stored.error[at])
    bases, slopes = steps
    return Approx(
        _window(stored.value, bases, slopes, box),
        None if stored.error is None else _window(stored.error, bases, slopes, box),
    )


def _positions(indices: Sequence[Poly], box: Box, shape: tuple[int, ...]) -> tuple[Array, ...]:
    """Index arrays, brought into the buffer."""
    if not indices:
        return (np.zeros((1,) * box.rank, np.int64),) if not shape else ()
    return tuple(np.clip(index_array(p, box), 0, n - 1) for p, n in zip(indices, shape, strict=True))


def _steps(indices: Sequence[Poly], box: Box) -> tuple[list[int], list[list[int]]] | None:
    """Per buffer dimension, the index at the start of the box and its step along each variable; None where an
    index is not affine."""
    bases: list[int] = []
    slopes: list[list[int]] = []
    for p in indices:
        base, slope = 0, [0] * box.rank
        for monomial, coefficient in p.terms.items():
            if not monomial:
                base += coefficient
                continue
            if len(monomial) > 1 or type(monomial[0]) is not Var:
                return None
            d = box.vars.index(monomial[0])
            slope[d] += coefficient
            base += coefficient * box.starts[d]
        bases.append(base)
        slopes.append(slope)
    return bases, slopes


def _window(stored: Array, bases: list[int], slopes: list[list[int]], box: Box) -> Array:
    """A view of the buffer with one dimension for each variable: the verifier has proved that it stays
    inside."""
    strides = [0] * box.rank
    shape = [1] * box.rank
    for slope, stride in zip(slopes, stored.strides, strict=True):
        for d, c in enumerate(slope):
            if c:
                strides[d] += c * stride
                shape[d] = box.sizes[d]
    start = stored[tuple(slice(b, None) for b in bases)]
    return as_strided(start, tuple(shape), tuple(strides), writeable=False)
