"""Reads whose indices are not proved to lie in their tensor."""

from __future__ import annotations

from dataclasses import dataclass

from ..arith import Poly, Var, lower, upper
from ..ir.expr import InBounds, Load, Select
from ..ir.proofs import follows
from .errors import TensorError, tensor_error
from .value import Read, Reduction, Value


@dataclass(frozen=True, slots=True, eq=False)
class Unproved:
    """The read and the dimension in which its index may leave the tensor."""

    read: Read
    dimension: int
    index: Poly


def unproved(value: Value, known: tuple[Poly, ...] = ()) -> Unproved | None:
    """The first read in `value`, not inside of a reduction, that is neither proved in bounds nor guarded.
    `known` are conditions (each below 0) that hold around it."""
    if isinstance(value, Read):
        return _outside(value, known)
    if isinstance(value, Reduction):
        return None
    if type(value.expr) is Select and len(value.parts) == 3:
        cond, a, b = value.parts
        more = value.expr.cond.conditions if type(value.expr.cond) is InBounds else ()
        return unproved(cond, known) or unproved(a, known + more) or unproved(b, known)
    for part in value.parts:
        out = unproved(part, known)
        if out is not None:
            return out
    return None


def _outside(read: Read, known: tuple[Poly, ...]) -> Unproved | None:
    load = read.expr
    assert type(load) is Load
    for d, (index, extent) in enumerate(zip(load.indices, load.buffer.shape, strict=True)):
        if not follows(-index - 1, known) or not follows(index - extent, known):
            return Unproved(read, d, index)
    return None


def out_of_range(bad: Unproved) -> TensorError:
    """What to say about it: the tensor, the dimension, the values of the index, the line of the read."""
    tensor, d, axis = bad.read.tensor, bad.dimension, bad.index.atom
    extent = tensor.buffer.shape[d]
    has = f"{tensor.name!r} has the extent {extent!r} in dimension {d}, "
    if isinstance(axis, Var) and (extent.const is None or axis.extent.const is None):
        return tensor_error(
            f"{has}but the axis {axis.name!r} runs over {axis.extent!r}, which is not provably the same or "
            "less; use one te.var for both, or guard the read with te.if_then_else",
            bad.read.span,
        )
    return tensor_error(
        f"{has}but the index {bad.index!r} takes values from {lower(bad.index)!r} to {upper(bad.index)!r}; "
        "guard the read with te.if_then_else",
        bad.read.span,
    )
