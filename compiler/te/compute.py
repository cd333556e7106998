"""te.compute: a tensor from a function of its indices."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from ..arith import Var, poly
from ..ir.expr import Buffer, Expr, Load
from ..ir.span import Span, user_span
from ..ir.visit import map_loads
from .errors import mismatch, tensor_error
from .guards import out_of_range, unproved
from .index import Index
from .tensor import Stage, Tensor, check_name, check_shape
from .value import Reduction, Value, found, free_vars, reads, reductions


def compute(
    shape: Sequence[int | Index] | int | Index,
    fcompute: Callable[..., Any],
    name: str = "compute",
    names: Sequence[str] | None = None,
) -> Tensor:
    """The tensor whose element at (i, j, …) is `fcompute(i, j, …)`. `names` are those of the loops; by
    default the function's own.

    A reduction that is the whole result becomes a block with an init; one inside of a larger expression
    becomes a tensor of its own, named after this one. Raises TensorError or TypeMismatch at the user's line:
    a function with another number of arguments than the shape has dimensions, a result without a dtype, a
    variable or reduce axis used outside of its scope, a read that may be out of range.
    """
    span = user_span()
    check_name(name, "te.compute")
    extents = check_shape(shape, f"te.compute {name!r}")
    given = _names(fcompute, len(extents), name)
    if names is not None:
        if len(names) != len(extents):
            raise tensor_error(f"te.compute {name!r}: {len(names)} names for {len(extents)} dimensions")
        given = [check_name(n, f"te.compute {name!r}") for n in names]
    iters = tuple(Var(n, e) for n, e in zip(given, extents, strict=True))
    result = fcompute(*(Index(poly(v)) for v in iters))
    if not isinstance(result, Value):
        if isinstance(result, tuple):
            raise tensor_error(f"te.compute {name!r}: one result is supported, got a tuple of {len(result)}")
        raise mismatch(f"te.compute {name!r}: the function must return a value, got {found(result)}")
    return _tensor(name, iters, result, span)


def _names(fcompute: Callable[..., Any], count: int, name: str) -> list[str]:
    if not callable(fcompute):
        raise tensor_error(
            f"te.compute {name!r}: expected a function of {count} indices, got {type(fcompute).__name__}"
        )
    positional: list[str] = []
    for p in inspect.signature(fcompute).parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            return positional[:count] + [f"i{d}" for d in range(len(positional), count)]
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty:
            positional.append(p.name)
    if len(positional) != count:
        takes = f"{len(positional)} argument" + ("" if len(positional) == 1 else "s")
        has = f"{count} dimension" + ("" if count == 1 else "s")
        raise tensor_error(f"te.compute {name!r}: the function takes {takes}, but the shape has {has}")
    return positional


def _tensor(name: str, iters: tuple[Var, ...], result: Value, span: Span | None) -> Tensor:
    """The tensor of one stage; reductions inside of the value become tensors before it."""
    reduction = result if isinstance(result, Reduction) else None
    value = reduction.term if reduction is not None else result
    axes = reduction.axes if reduction is not None else ()
    _check_scope(name, value, set(iters + axes))
    bad = unproved(value, tuple(-v.extent for v in iters + axes if v.extent.const is None))
    if bad is not None:
        raise out_of_range(bad)
    inputs: list[Tensor] = []
    for read in reads(value):
        if read.tensor not in inputs:
            inputs.append(read.tensor)
    stand_ins: dict[Buffer, Load] = {}
    for r in reductions(value):
        free = free_vars(r)
        kept = tuple(v for v in iters + axes if v in free)
        part = _tensor(f"{name}_{r.word}", kept, r, r.span or span)
        stand_in = r.expr
        assert type(stand_in) is Load
        stand_ins[stand_in.buffer] = Load(part.buffer, tuple(map(poly, kept)))
        inputs.append(part)
    expr: Expr = map_loads(value.expr, lambda load: stand_ins.get(load.buffer, load))
    op, init = (None, None) if reduction is None else (reduction.op, reduction.init)
    stage = Stage(iters, axes, expr, op, init, tuple(inputs), span)
    return Tensor(name, tuple(v.extent for v in iters), value.dtype, stage)


def _check_scope(name: str, value: Value, scope: set[Var]) -> None:
    stray = sorted(free_vars(value) - scope, key=lambda v: v.name)
    if stray:
        v = stray[0]
        raise tensor_error(
            f"te.compute {name!r} uses {v.name!r}, which is neither a variable of the function "
            "nor the axis of a reduction around it",
            _where(value, v),
        )


def _where(value: Value, v: Var) -> Span | None:
    """The line of the smallest part that uses `v`."""
    parts = (value.term,) if isinstance(value, Reduction) else value.parts
    for part in parts:
        if v in free_vars(part):
            return _where(part, v)
    return value.span
