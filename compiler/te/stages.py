"""The stages that the results of one te.compute need: a tensor for each, and for each reduction inside of
them."""

from __future__ import annotations

from ..arith import Var, poly
from ..ir.expr import Buffer, Expr, Load
from ..ir.span import Span
from ..ir.visit import map_loads
from .errors import tensor_error
from .guards import out_of_range, unproved
from .tensor import Stage, Tensor
from .value import Reduction, Value, free_vars, reads, reductions


class Stages:
    """Makes the tensors of named results over the variables `iters`. A reduction that stands in several
    places is computed once."""

    def __init__(self, iters: tuple[Var, ...], span: Span | None, results: dict[str, Value]) -> None:
        self._iters = iters
        self._span = span
        self._results = results
        #: By the reduction's identity: its tensor, and the variables that index it.
        self._made: dict[int, tuple[Tensor, tuple[Var, ...]]] = {}
        #: A reduction that is a result under this name.
        self._named: dict[int, str] = {}
        for name, r in results.items():
            if isinstance(r, Reduction):
                self._named.setdefault(id(r), name)

    def outputs(self) -> tuple[Tensor, ...]:
        """One tensor for each result. Raises TensorError at the line of the part that is wrong."""
        out: list[Tensor] = []
        for name, r in self._results.items():
            if isinstance(r, Reduction) and self._named[id(r)] == name:
                out.append(self._part(name, r, self._iters)[0])
                continue
            out.append(self._tensor(name, self._iters, r, self._span))
        return tuple(out)

    def _part(self, around: str, r: Reduction, scope: tuple[Var, ...]) -> tuple[Tensor, tuple[Var, ...]]:
        """The tensor of a reduction, made at the first place that needs it."""
        known = self._made.get(id(r))
        if known is None:
            name = self._named.get(id(r))
            if name is not None:
                kept, span = self._iters, self._span
            else:
                free = free_vars(r)
                name, span = f"{around}_{r.word}", r.span or self._span
                kept = tuple(v for v in scope if v in free)
            known = self._made[id(r)] = self._tensor(name, kept, r, span, own=True), kept
        return known

    def _tensor(
        self, name: str, iters: tuple[Var, ...], result: Value, span: Span | None, own: bool = False
    ) -> Tensor:
        """The tensor of one stage; reductions inside of the value become tensors before it. own: a reduction
        as the result is this stage's own, not one to read."""
        reduction = result if isinstance(result, Reduction) and own else None
        value = reduction.term if reduction is not None else result
        axes = reduction.axes if reduction is not None else ()
        _check_scope(name, value, set(iters + axes))
        # Where there is an iteration to run, every extent is at least 1.
        bad = unproved(value, tuple(-v.extent for v in iters + axes if v.extent.const is None))
        if bad is not None:
            raise out_of_range(bad)
        inputs: list[Tensor] = []
        for read in reads(value):
            if read.tensor not in inputs:
                inputs.append(read.tensor)
        stand_ins: dict[Buffer, Load] = {}
        for r in reductions(value):
            part, kept = self._part(name, r, iters + axes)
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
