"""transform_block_layout: the loops of a block under an index map."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...arith import Atom, Poly, Var, poly, substitute
from ...ir import Block, For, IterKind, LoopKind, PrimFunc, Stmt, map_expr
from ...ir.func import fresh
from ..errors import ScheduleError
from ..find import check_in_no_unit, find_block
from ..index_expr import MapError, MapFunction, Plain, spell
from ..index_map import IndexMap, index_map
from .loops import add_predicate, rebind


@dataclass(frozen=True, slots=True, eq=False)
class _Own:
    """A block in a nest of its own: `loops` are those of its iteration variables, `chain` the same loops from
    the outside inwards."""

    block: Block
    loops: tuple[Var, ...]
    chain: tuple[For, ...]


def check_own_nest(func: PrimFunc, block: Block, path: tuple[For, ...], primitive: str) -> _Own:
    """Each iteration variable is bound to a serial loop of its own and of its extent; the loops are a perfect
    nest around the block alone, and nothing is masked."""

    def refuse(reason: str) -> ScheduleError:
        return ScheduleError(primitive, reason, func, block)

    check_in_no_unit(func, path, block, primitive)
    around = {f.var for f in path}
    loops: list[Var] = []
    for it, bind in zip(block.iters, block.binds, strict=True):
        v = bind.atom
        if not isinstance(v, Var) or v not in around or v in loops or v.extent != it.extent:
            reason = f"{block.name!r} takes {it.name!r} from {bind!r}, which is no loop of its own"
            raise refuse(f"{reason}; do this before its loops are split, fused or moved")
        loops.append(v)
    if block.predicates:
        raise refuse(f"some instances of {block.name!r} are masked; do this before its loops are split")
    first = next((n for n, f in enumerate(path) if f.var in loops), len(path))
    chain = path[first:]
    for f in chain:
        if f.var not in loops:
            raise refuse(f"loop {f.var.name!r} stands between the loops of {block.name!r}")
        if len(f.body) != 1:
            raise refuse(f"loop {f.var.name!r} holds {len(f.body)} statements, not just {block.name!r}")
        if f.kind is not LoopKind.SERIAL:
            raise refuse(f"loop {f.var.name!r} is {f.kind} already")
    return _Own(block, tuple(loops), chain)


def check_transform_block_layout(
    func: PrimFunc, block: Block, path: tuple[For, ...], function: MapFunction
) -> tuple[_Own, IndexMap, tuple[IterKind, ...]]:
    """The block's own nest, a map whose way back is known, and the kinds of the new loops: none is both."""
    own = check_own_nest(func, block, path, "transform_block_layout")
    if not own.loops:
        reason = f"{block.name!r} has no iteration variables"
        raise ScheduleError("transform_block_layout", reason, func, block)
    try:
        found = index_map(function, [it.extent for it in block.iters])
    except MapError as e:
        raise ScheduleError("transform_block_layout", str(e), func, block) from None
    if found.digits is None:
        text = ", ".join(map(spell, found.outputs))
        reason = (
            f"the way back from ({text}) is not known; divide single indices, in several steps if need be"
        )
        raise ScheduleError("transform_block_layout", reason, func, block)
    kinds: list[IterKind] = []
    kind_of = dict(zip(found.inputs, block.kinds, strict=True))
    for o, digits in zip(found.outputs, found.digits, strict=True):
        mixed = {block.kinds[d.input] for _, d in digits} or {kind_of[v] for v in o.vars()}
        if len(mixed) > 1:
            reason = f"{spell(o)} mixes spatial and reduction steps of {block.name!r}"
            raise ScheduleError("transform_block_layout", reason, func, block)
        kinds.append(next(iter(mixed), IterKind.SPATIAL))
    return own, found, tuple(kinds)


def transform_block_layout(
    func: PrimFunc, name: str, function: MapFunction
) -> tuple[PrimFunc, list[Var], Plain]:
    """Runs a block over the indices that an index map makes of its iteration variables: a function from these
    to the new loops, the first outermost.

    before: `for i in range(8): for j in range(6): B[i, j] = A[i, j]`
    after `lambda i, j: (i // 4, j, i % 4)`:
    `for i_0 in range(2): for j in range(6): for i_1 in range(4): B[i_0 * 4 + i_1, j] = A[i_0 * 4 + i_1, j]`

    The map takes +, -, * and, with positive integers, // and % of single indices, and is one to one. Where it
    covers its box, the new indices become the block's iteration variables; otherwise what lies past an end is
    masked. Legal for a block alone in a nest of unscheduled loops, one for each iteration variable. Refused:
    an output that mixes spatial and reduction variables. Returns the program, the new loops and the map as
    plain values.
    """
    path, block = find_block(func, name, "transform_block_layout")
    own, found, kinds = check_transform_block_layout(func, block, path, function)
    taken = {f.var.name for f in path[: len(path) - len(own.chain)]}
    names = _names(block, found)
    loops = [Var(fresh(n, taken), e) for n, e in zip(names, found.shape, strict=True)]
    # A reduction of one step stays one where the map leaves its variable out.
    if found.is_onto and block.is_reduction == (IterKind.REDUCE in kinds):
        iters = tuple(Var(v.name, v.extent) for v in loops)
        back = found.back([poly(v) for v in iters])
        m: dict[Atom, Poly] = dict(zip(block.iters, back, strict=True))

        def moved(p: Poly) -> Poly:
            return substitute(p, m)

        new = replace(
            block,
            iters=iters,
            kinds=kinds,
            binds=tuple(poly(v) for v in loops),
            indices=tuple(map(moved, block.indices)),
            value=map_expr(block.value, moved),
            init=None if block.init is None else map_expr(block.init, moved),
        )
    else:
        values = found.back([poly(v) for v in loops])
        new = rebind(block, dict(zip(own.loops, values, strict=True)))
        for it, value in zip(block.iters, values, strict=True):
            new = add_predicate(new, value - it.extent)
    body: tuple[Stmt, ...] = (new,)
    for v in reversed(loops):
        body = (For(v, body),)

    def visit(s: Stmt) -> Stmt:
        return body[0] if type(s) is For and s.var is own.chain[0].var else s

    return func.rewrite(visit), loops, found.plain()


def _names(block: Block, found: IndexMap) -> list[str]:
    """Names for the new loops: those of the variables in them, numbered where one is cut into several."""
    assert found.digits is not None
    inside = [list(dict.fromkeys(d.input for _, d in reversed(digits))) for digits in found.digits]
    names: list[str] = []
    for n, inputs in enumerate(inside):
        name = "_".join(block.iters[i].name for i in inputs) or "unit"
        same = [m for m, other in enumerate(inside) if other == inputs]
        names.append(f"{name}_{same.index(n)}" if len(same) > 1 else name)
    return names
