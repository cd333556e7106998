"""Blocks that look for the place of an extreme value: the least (or largest) index at which an array equals
its own minimum or maximum.

By itself, a comparison of numbers that are known within bounds is undecided at the very place where both are
equal, and the bound of the index would admit every index. But the extreme value is one of the array's: the
index is that of one of the candidates, those within their bounds of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arith import Atom, Poly, poly, substitute
from ..ir.expr import Binary, Compare, Const, Expr, Load, Select
from ..ir.func import PrimFunc
from ..ir.stmt import Block, IterKind
from .approx import Approx
from .evaluate import Box, Memory, evaluate, same_read
from .inputs import Array


def places_of(func: PrimFunc) -> frozenset[Block]:
    """The blocks of that kind."""
    blocks = [b for _, b in func.blocks()]
    return frozenset(b for b in blocks if _is_place(b, blocks))


def _is_place(b: Block, blocks: list[Block]) -> bool:
    if not b.is_reduction or not isinstance(b.value, Binary) or b.value.op not in ("min", "max"):
        return False
    term = b.value.b
    if type(term) is not Select or type(term.b) is not Const or not b.buffer.dtype.is_int:
        return False
    match _equality(term.cond):
        case Compare("eq", Load() as array, Load() as extreme):
            made = [x for x in blocks if x.buffer is extreme.buffer]
            return len(made) == 1 and _is_extreme(made[0], b, array, extreme)
    return False


def _equality(cond: Expr) -> Expr:
    """`a == b` of a condition that is that, or that or `a != a`."""
    if type(cond) is Binary and cond.op == "or" and type(cond.a) is type(cond.b) is Compare:
        a, b = cond.a, cond.b
        if b.op == "ne" and same_read(a.a, b.a) and same_read(b.a, b.b):
            return a
    return cond


def _is_extreme(made: Block, place: Block, array: Load, extreme: Load) -> bool:
    """Whether `made` reduces over exactly the elements that `place` compares with its result."""
    v = made.value
    if type(v) is not Binary or v.op not in ("min", "max") or type(v.b) is not Load:
        return False
    if v.b.buffer is not array.buffer or len(extreme.indices) != len(made.indices):
        return False
    binding: dict[Atom, Poly] = {}
    for own, used in zip(made.indices, extreme.indices, strict=True):
        if own.atom is None:
            return False
        binding[own.atom] = used
    steps = [
        [x for x, k in zip(b.iters, b.kinds, strict=True) if k is IterKind.REDUCE] for b in (made, place)
    ]
    if [x.extent for x in steps[0]] != [x.extent for x in steps[1]]:
        return False
    binding.update(zip(steps[0], map(poly, steps[1]), strict=True))
    return tuple(substitute(i, binding) for i in v.b.indices) == array.indices


def place(block: Block, box: Box, memory: Memory) -> Approx | None:
    """The index over the box, which holds all steps, with size 1 along reduce variables: exact where one
    candidate is left, else as far off as the candidates are apart. None where all is exact anyway."""
    assert isinstance(block.value, Binary) and isinstance(block.value.b, Select)
    term = block.value.b
    cond, places = evaluate(term.cond, box, memory), evaluate(term.a, box, memory)
    if cond.error is None or places.error is not None:
        return None
    axes = tuple(d for d, k in enumerate(block.kinds) if k is IterKind.REDUCE)
    assert isinstance(term.b, Const)
    first, last = (np.minimum, np.maximum) if block.value.op == "min" else (np.maximum, np.minimum)
    index, met, maybe = np.broadcast_arrays(places.value, cond.value, cond.error)
    sure = met & ~maybe

    def best(among: Array, of: np.ufunc, none: Any) -> Array:
        return np.asarray(of.reduce(np.where(among, index, none), axis=axes, keepdims=True))

    nowhere = np.array(term.b.value, index.dtype)[()]
    r = best(met, first, nowhere)
    # One of the candidates is met: the first of them at the earliest; at the latest the first that surely is.
    early = best(sure | maybe, first, nowhere)
    limits = np.iinfo(index.dtype)
    latest = best(maybe, last, limits.min if last is np.maximum else limits.max)
    late = np.where(sure.any(axis=axes, keepdims=True), best(sure, first, nowhere), latest)
    off = [np.abs(x.astype(np.float64) - r.astype(np.float64)) for x in (early, late)]
    return Approx(r, np.maximum(*off))
