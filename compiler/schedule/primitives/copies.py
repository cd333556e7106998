"""Statements a second time: loops, blocks and iteration variables of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ...arith import Atom, Poly, Var, poly, proven_negative, substitute
from ...ir import Block, Buffer, Expr, For, Load, Stmt, map_expr
from ...ir.annotations import UNIT
from ...ir.func import fresh
from ..find import unit_of


def copy_block(
    block: Block,
    name: str,
    loops: Mapping[Atom, Poly],
    buffers: Mapping[Buffer, Buffer] | None = None,
    init: bool = True,
) -> Block:
    """A block under another name that owns its iteration variables: two blocks never share one.

    loops: loop variables -> what the copy binds instead. buffers: those that it uses instead of others.
    init: whether a reduction keeps its init. Predicates that hold everywhere are left out.
    """
    own: dict[Atom, Poly] = {v: poly(Var(v.name, v.extent)) for v in block.iters}
    into = buffers or {}

    def index(p: Poly) -> Poly:
        return substitute(p, own)

    def load(x: Load) -> Expr:
        return Load(into.get(x.buffer, x.buffer), x.indices)

    predicates = [substitute(p, loops) for p in block.predicates]
    return replace(
        block,
        name=name,
        iters=tuple(own[v].atom for v in block.iters),  # type: ignore[misc]
        binds=tuple(substitute(b, loops) for b in block.binds),
        buffer=into.get(block.buffer, block.buffer),
        indices=tuple(index(i) for i in block.indices),
        value=map_expr(block.value, index, load),
        init=None if block.init is None or not init else map_expr(block.init, index, load),
        predicates=tuple(p for p in predicates if not proven_negative(p)),
    )


def _own_unit(loop: For, taken: set[str]) -> tuple[tuple[str, str | int], ...]:
    """The annotations of the copy of a loop: a unit is one of its own, under a name of its own."""
    unit = unit_of(loop)
    if unit is None:
        return loop.annotations
    name = fresh(unit, taken)
    taken.add(name)
    return tuple((k, name if k == UNIT else v) for k, v in loop.annotations)


def copy_body(
    body: tuple[Stmt, ...],
    loops: Mapping[Atom, Poly],
    taken: set[str],
    buffers: Mapping[Buffer, Buffer],
    keeps_init: Callable[[Block], bool],
) -> tuple[Stmt, ...]:
    """Copies of statements. Blocks and units get names that are not `taken`, which grows by them; see
    `copy_block`."""
    out: list[Stmt] = []
    for s in body:
        if type(s) is For:
            var = Var(s.var.name, s.var.extent)
            inner = copy_body(s.body, {**loops, s.var: poly(var)}, taken, buffers, keeps_init)
            out.append(replace(s, var=var, body=inner, annotations=_own_unit(s, taken)))
        else:
            assert type(s) is Block
            name = fresh(s.name, taken)
            taken.add(name)
            out.append(copy_block(s, name, loops, buffers, keeps_init(s)))
    return tuple(out)
