"""Programs over sizes made concrete."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import SupportsIndex

from ..arith import Atom, Poly, Var, poly, substitute
from .expr import Buffer, Expr, Load
from .func import PrimFunc
from .stmt import Block, For, Stmt
from .visit import map_expr


def bind_sizes(func: PrimFunc, sizes: Mapping[str, SupportsIndex]) -> PrimFunc:
    """The program for these values of its sizes, by name. A loop over a size that is 0 stays, and runs no
    iteration. Raises ValueError unless every size, and nothing else, has an integer of at least 0."""
    names = [s.name for s in func.sizes]
    for name in names:
        if name not in sizes:
            raise ValueError(f"{func.name!r}: the size {name!r} has no value; its sizes are {names}")
    for name, value in sizes.items():
        if name not in names:
            raise ValueError(f"{func.name!r} has no size {name!r}; its sizes are {names}")
        if operator.index(value) < 0:
            raise ValueError(f"{func.name!r}: the size {name!r} must be at least 0, got {value}")
    if not names:
        return func
    values: dict[Atom, Poly] = {s: poly(operator.index(sizes[s.name])) for s in func.sizes}
    buffers = {b: _buffer(b, values) for b in func.params + func.allocs}
    body = tuple(_stmt(s, values, buffers) for s in func.body)
    return replace(
        func,
        params=tuple(buffers[b] for b in func.params),
        allocs=tuple(buffers[b] for b in func.allocs),
        body=body,
    )


def sizes_from(func: PrimFunc, shapes: Sequence[Sequence[int]]) -> dict[str, int]:
    """The sizes of a program, by name, read off the shapes of its arguments: each from the first dimension
    that is the size itself. Dimensions that are not there are not read."""
    found: dict[str, int] = {}
    for b, shape in zip(func.params, shapes, strict=False):
        for extent, n in zip(b.shape, shape, strict=False):
            if extent.atom in func.sizes:
                found.setdefault(repr(extent), n)
    return found


def _buffer(b: Buffer, values: Mapping[Atom, Poly]) -> Buffer:
    shape = tuple(substitute(p, values) for p in b.shape)
    return b if shape == b.shape else replace(b, shape=shape)


def _stmt(s: Stmt, values: dict[Atom, Poly], buffers: Mapping[Buffer, Buffer]) -> Stmt:
    if type(s) is For:
        var = _var(s.var, values)
        inner = {**values, s.var: poly(var)}
        return replace(s, var=var, body=tuple(_stmt(x, inner, buffers) for x in s.body))
    assert type(s) is Block
    iters = tuple(_var(v, values) for v in s.iters)
    inside = dict(values)
    inside.update(zip(s.iters, map(poly, iters), strict=True))

    def index(p: Poly) -> Poly:
        return substitute(p, inside)

    def value(e: Expr) -> Expr:
        return map_expr(e, index, lambda x: Load(buffers[x.buffer], x.indices))

    return replace(
        s,
        iters=iters,
        binds=tuple(substitute(p, values) for p in s.binds),
        buffer=buffers[s.buffer],
        indices=tuple(map(index, s.indices)),
        value=value(s.value),
        init=None if s.init is None else value(s.init),
        predicates=tuple(substitute(p, values) for p in s.predicates),
    )


def _var(v: Var, values: Mapping[Atom, Poly]) -> Var:
    return Var(v.name, substitute(v.extent, values))
