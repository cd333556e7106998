"""Sums of products of two factors, as matrix products."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..arith import Var
from ..ir.dtype import DType
from ..ir.expr import Binary, Cast, Expr
from ..ir.stmt import IterKind
from ..ir.visit import indices_of
from .approx import Approx
from .evaluate import Box, Memory, evaluate
from .inputs import Array

#: Elements of a factor, or of the sums, that are laid out at once; 32 MiB of float64.
LIMIT = 1 << 22
#: Integers up to here are exact in float64.
EXACT = 1 << 53


@dataclass(frozen=True, slots=True, eq=False)
class Contraction:
    """Σ a·b over reduce variables. Each factor is a product of expressions. narrow: eps of the narrowest
    product, when it is computed in another dtype than the sum."""

    a: tuple[Expr, ...]
    b: tuple[Expr, ...]
    a_vars: frozenset[Var]
    b_vars: frozenset[Var]
    narrow: float


def contraction_of(term: Expr, dtype: DType) -> Contraction | None:
    """The two factors of `term`, summed in `dtype`; None when it is not a product of two that depend on
    different variables."""
    found: list[Expr] = []
    narrow = _factors(term, dtype, found)
    if narrow is None:
        return None
    groups: list[tuple[list[Expr], frozenset[Var]]] = []
    # The factors with most variables first: those with a subset of them join in elementwise.
    for e, used in sorted(((e, _vars(e)) for e in found), key=lambda x: -len(x[1])):
        for i, (members, have) in enumerate(groups):
            if used <= have:
                groups[i] = ([*members, e], have)
                break
        else:
            groups.append(([e], used))
    if len(groups) != 2:
        return None
    (a, a_vars), (b, b_vars) = groups
    return Contraction(tuple(a), tuple(b), a_vars, b_vars, narrow)


def _factors(e: Expr, dtype: DType, out: list[Expr]) -> float | None:
    if type(e) is Binary and e.op == "mul":
        a, b = _factors(e.a, dtype, out), _factors(e.b, dtype, out)
        own = e.dtype.eps if e.dtype.is_float and e.dtype != dtype else 0.0
        return None if a is None or b is None else max(a, b, own)
    if type(e) is Cast and type(e.a) is Binary and e.a.op == "mul":
        if e.a.dtype.is_float and e.dtype.is_float and e.a.dtype.eps >= e.dtype.eps:
            return _factors(e.a, dtype, out)
        # An integer product wraps around before it is widened.
        return None
    out.append(e)
    return 0.0


def _vars(e: Expr) -> frozenset[Var]:
    return frozenset(v for p in indices_of(e) for v in p.vars())


def is_exact(c: Contraction, box: Box, dtype: DType, memory: Memory) -> bool:
    """Whether both factors of a sum of integers are known without doubt: `contract` handles no others."""
    return all(_factor(parts, box, dtype, memory).error is None for parts in (c.a, c.b))


def contract(
    c: Contraction, box: Box, kinds: tuple[IterKind, ...], dtype: DType, terms: int, memory: Memory
) -> Approx | None:
    """The sum over the box, with size 1 along reduce variables. None where integers may not be handled
    exactly here."""
    a, b = _factor(c.a, box, dtype, memory), _factor(c.b, box, dtype, memory)
    layout = _Layout.of(c, box, kinds)
    if not dtype.is_float:
        return _integers(a, b, layout, dtype)
    x, y = layout.left(a.value), layout.right(b.value)
    r = x @ y
    ax, ay = np.abs(x), np.abs(y)
    magnitude = ax @ ay
    error = magnitude * (8.0 * math.sqrt(terms) * dtype.eps + c.narrow)
    if a.error is not None or b.error is not None:
        ex = ax if a.error is None else ax + layout.left(np.broadcast_to(a.error, a.value.shape))
        ey = ay if b.error is None else ay + layout.right(np.broadcast_to(b.error, b.value.shape))
        error = error + np.maximum(ex @ ey - magnitude, 0.0)
    return Approx(layout.restore(r), layout.restore(error))


def _factor(parts: tuple[Expr, ...], box: Box, dtype: DType, memory: Memory) -> Approx:
    out = evaluate(parts[0], box, memory)
    for e in parts[1:]:
        other = evaluate(e, box, memory)
        error = None
        if out.error is not None or other.error is not None:
            eo = np.zeros(()) if out.error is None else out.error
            et = np.zeros(()) if other.error is None else other.error
            error = np.abs(out.value) * et + np.abs(other.value) * eo + eo * et
        out = Approx(out.value * other.value, error)
    return out


def _integers(a: Approx, b: Approx, layout: _Layout, dtype: DType) -> Approx | None:
    if a.error is not None or b.error is not None:
        return None
    x, y = layout.left(a.value), layout.right(b.value)
    largest = int(np.abs(x.astype(np.float64)).max()) * int(np.abs(y.astype(np.float64)).max()) * layout.terms
    if largest < EXACT:
        total: Array = (x.astype(np.float64) @ y.astype(np.float64)).astype(np.int64)
    else:
        # Arithmetic modulo 2^64 is exact modulo every smaller power of two.
        wide = np.uint64 if dtype.code == "uint" else np.int64
        total = x.astype(wide) @ y.astype(wide)
    return Approx(layout.restore(total).astype(dtype.numpy))


@dataclass(frozen=True, slots=True, eq=False)
class _Layout:
    """Where each variable of the box goes: batch, rows (of a), columns (of b), summed in both; what only one
    factor sums comes first."""

    box: Box
    batch: list[int]
    rows: list[int]
    columns: list[int]
    summed: list[int]
    a_alone: tuple[int, ...]
    b_alone: tuple[int, ...]
    terms: int

    @staticmethod
    def of(c: Contraction, box: Box, kinds: tuple[IterKind, ...]) -> _Layout:
        batch, rows, columns, summed, a_alone, b_alone = ([] for _ in range(6))  # type: ignore[var-annotated]
        for d, (v, kind) in enumerate(zip(box.vars, kinds, strict=True)):
            in_a, in_b = v in c.a_vars, v in c.b_vars
            if kind is IterKind.SPATIAL:
                target = batch if in_a and in_b else rows if in_a else columns if in_b else None
            else:
                target = summed if in_a and in_b else a_alone if in_a else b_alone if in_b else None
            if target is not None:
                target.append(d)
        terms = math.prod(n for n, kind in zip(box.sizes, kinds, strict=True) if kind is IterKind.REDUCE)
        return _Layout(box, batch, rows, columns, summed, tuple(a_alone), tuple(b_alone), terms)

    def _size(self, dims: list[int]) -> int:
        return math.prod(self.box.sizes[d] for d in dims)

    def left(self, x: Array) -> Array:
        """`x` as (batch, rows, summed)."""
        return self._matrices(x, self.a_alone, self.rows, self.summed)

    def right(self, x: Array) -> Array:
        """`x` as (batch, summed, columns)."""
        return self._matrices(x, self.b_alone, self.summed, self.columns)

    def _matrices(self, x: Array, alone: tuple[int, ...], rows: list[int], columns: list[int]) -> Array:
        if alone:
            x = x.sum(axis=alone, keepdims=True, dtype=x.dtype)
        order = self.batch + rows + columns
        order += [d for d in range(self.box.rank) if d not in order]
        return x.transpose(order).reshape(self._size(self.batch), self._size(rows), self._size(columns))

    def restore(self, x: Array) -> Array:
        """(batch, rows, columns) as an array over the box."""
        order = self.batch + self.rows + self.columns
        rest = [d for d in range(self.box.rank) if d not in order]
        full = x.reshape([self.box.sizes[d] for d in order] + [1] * len(rest))
        return full.transpose(np.argsort(order + rest).tolist())
