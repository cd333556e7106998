"""pad_einsum: the domain of a sum of products as multiples of tiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...arith import Atom, Poly, Var, ceil_div, poly, substitute
from ...ir import (
    Binary,
    Block,
    Buffer,
    Cast,
    Const,
    Expr,
    For,
    InBounds,
    Load,
    PrimFunc,
    Select,
    Stmt,
    loads,
    map_expr,
)
from ..errors import ScheduleError
from ..find import find_block, readers, root_of, writers
from .block_layout import check_own_nest
from .reindex import nest_over, spatial_iters, zero

#: The largest multiple; a loop grows by less than this.
MAX_PADDING = 4096


@dataclass(frozen=True, slots=True, eq=False)
class _Einsum:
    """`chain` is the nest of the block, `padded` the new extent of each iteration variable that grows."""

    block: Block
    loops: tuple[Var, ...]
    chain: tuple[For, ...]
    padded: dict[Var, Poly]


def factors_of(e: Expr) -> list[Load] | None:
    """The loads of a product of loads, each perhaps converted; None for anything else."""
    if type(e) is Load:
        return [e]
    if type(e) is Cast:
        return factors_of(e.a) if type(e.a) in (Load, Cast) else None
    if type(e) is Binary and e.op == "mul":
        a, b = factors_of(e.a), factors_of(e.b)
        return None if a is None or b is None else a + b
    return None


def check_pad_einsum(func: PrimFunc, block: Block, path: tuple[For, ...], padding: Sequence[int]) -> _Einsum:
    """A product of loads, or a sum of such from a constant, alone in an unscheduled nest; what grows indexes
    dimensions directly, and what is added in the padding is 0 whatever the inputs hold."""

    def refuse(reason: str) -> ScheduleError:
        return ScheduleError("pad_einsum", reason, func, block)

    own = check_own_nest(func, block, path, "pad_einsum")
    if len(own.chain) != len(path):
        raise refuse(f"{block.name!r} stands in loops that are not its own; pad it before it is moved")
    count = len(block.iters)
    if isinstance(padding, str) or not isinstance(padding, Sequence) or len(padding) != count:
        raise refuse(f"padding is a list with one multiple for each of {count} variables, got {padding!r}")
    for p in padding:
        if type(p) is not int or not 1 <= p <= MAX_PADDING:
            raise refuse(f"a multiple is an integer from 1 to {MAX_PADDING}, got {p!r}")
    value = block.value
    if block.is_reduction:
        if block.init is None:
            raise refuse(f"the init of {block.name!r} was decomposed; pad it before that")
        if type(block.init) is not Const or type(value) is not Binary or value.op != "add":
            raise refuse(f"{block.name!r} is no sum that begins with a constant")
        value = value.b
    factors = factors_of(value)
    if factors is None:
        raise refuse(f"{block.name!r} is no product of loads, or sum of such")
    if writers(func, block.buffer) != [block]:
        raise refuse(f"{block.buffer.name} is written by more than one block")
    spatial = spatial_iters(block)
    if len(block.indices) != len(spatial) or {p.atom for p in block.indices} != set(spatial):
        raise refuse(f"{block.name!r} does not write {block.buffer.name} at its spatial variables")
    sizes = [ceil_div(it.extent, p) * p for it, p in zip(block.iters, padding, strict=True)]
    padded = {it: s for it, s in zip(block.iters, sizes, strict=True) if s != it.extent}
    root = root_of(func, block.name)
    for x in factors:
        if any(i.vars() & set(padded) and i.atom not in padded for i in x.indices):
            raise refuse(f"a padded variable is not alone in an index of {x.buffer.name}")
        if any(root_of(func, w.name) >= root for w in writers(func, x.buffer)):
            raise refuse(f"{x.buffer.name} is not complete before {block.name!r}")
    for it in padded:
        if it in spatial:
            continue
        without = [x for x in factors if all(it is not i.atom for i in x.indices)]
        if len(without) == len(factors):
            raise refuse(f"nothing that {block.name!r} adds up is indexed by {it.name!r}")
        if without and value.dtype.is_float:
            reason = f"{without[0].buffer.name} is not indexed by {it.name!r}"
            raise refuse(f"{reason}; where it holds an infinity, its products with padding would be NaN")
    for r in readers(func, block.buffer):
        if root_of(func, r.name) <= root:
            raise refuse(f"{r.name!r} reads {block.buffer.name} before all of it is written")
    return _Einsum(block, own.loops, own.chain, padded)


def pad_einsum(func: PrimFunc, name: str, padding: Sequence[int]) -> PrimFunc:
    """Rounds the extent of each iteration variable up to a multiple, so that tiles of that size have no tail.

    before: `for i in range(10): for j in range(6): for k in range(5): C[i, j] += A[i, k] * B[k, j]`
    after `padding=[4, 1, 4]`: `A_pad: float32[12, 8]` and `B_pad: float32[8, 6]` are A and B with zeros
    around them, `for i in range(12): for j in range(6): for k in range(8):
    C_pad[i, j] += A_pad[i, k] * B_pad[k, j]`, then `C[i, j] = C_pad[i, j]` for the elements that exist

    Legal for a product of loads, or a sum of such, in an unscheduled nest. Refused: other expressions, a
    variable that grows and does not index a dimension directly, a float factor that a growing sum leaves
    unpadded. The handles of the block's loops end.
    """
    path, block = find_block(func, name, "pad_einsum")
    e = check_pad_einsum(func, block, path, padding)
    if not e.padded:
        return func
    iters = {it: Var(it.name, e.padded.get(it, it.extent)) for it in block.iters}
    loops = {v: Var(v.name, iters[it].extent) for v, it in zip(e.loops, block.iters, strict=True)}
    m: dict[Atom, Poly] = {it: poly(v) for it, v in iters.items()}
    allocs: list[Buffer] = []
    before: list[Stmt] = []
    after: tuple[Stmt, ...] = ()
    copies: dict[tuple[Buffer, tuple[Poly, ...]], Buffer] = {}
    for x in loads(block.value):
        at = (x.buffer, x.indices)
        if x.buffer is block.buffer or at in copies or not any(i.atom in e.padded for i in x.indices):
            continue
        so_far = replace(func, allocs=(*func.allocs, *allocs), body=(*func.body, *before))
        copies[at], made = _padded_input(so_far, e, x)
        allocs.append(copies[at])
        before += made
    target, indices = block.buffer, tuple(substitute(i, m) for i in block.indices)
    if any(i.atom in e.padded for i in block.indices):
        shape = tuple(iters[v].extent for i in block.indices if isinstance(v := i.atom, Var))
        named = replace(func, allocs=(*func.allocs, *allocs))
        target = Buffer(named.fresh_buffer_name(f"{target.name}_pad"), shape, target.dtype)
        allocs.append(target)
        after = _output(func, block, target)

    def put(x: Load) -> Expr:
        if x.buffer is block.buffer:
            return Load(target, indices)
        return x

    value = map_expr(_through(block.value, copies), lambda p: substitute(p, m), put)
    new = replace(
        block,
        iters=tuple(iters.values()),
        binds=tuple(poly(loops[v]) for v in e.loops),
        buffer=target,
        indices=indices,
        value=value,
    )
    body: tuple[Stmt, ...] = (new,)
    for f in reversed(e.chain):
        body = (replace(f, var=loops[f.var], body=body),)
    root = root_of(func, name)
    whole = (*func.body[:root], *before, *body, *after, *func.body[root + 1 :])
    return replace(func, allocs=(*func.allocs, *allocs), body=whole)


def _through(e: Expr, copies: dict[tuple[Buffer, tuple[Poly, ...]], Buffer]) -> Expr:
    """The value with each padded load from its copy."""

    def put(x: Load) -> Expr:
        copy = copies.get((x.buffer, x.indices))
        return x if copy is None else Load(copy, x.indices)

    return map_expr(e, lambda p: p, put)


def _padded_input(func: PrimFunc, e: _Einsum, x: Load) -> tuple[Buffer, tuple[Stmt, ...]]:
    """A copy of what a load reads, with zeros where a variable is past its extent."""
    old = x.buffer
    grown = [v if isinstance(v := i.atom, Var) and v in e.padded else None for i in x.indices]
    shape = [n if v is None else e.padded[v] for v, n in zip(grown, old.shape, strict=True)]
    copy = Buffer(func.fresh_buffer_name(f"{old.name}_pad"), tuple(shape), old.dtype)
    iters = [Var(f"i{d}", n) for d, n in enumerate(shape)]
    at = tuple(poly(v) for v in iters)
    limits = tuple(p - v.extent for p, v in zip(at, grown, strict=True) if v is not None)
    value = Select(InBounds(limits), Load(old, at), zero(old.dtype))
    return copy, nest_over(func.fresh_block_name(copy.name), iters, Load(copy, at), value)


def _output(func: PrimFunc, block: Block, source: Buffer) -> tuple[Stmt, ...]:
    """The elements that exist, copied to where they belong."""
    iters = [Var(v.name, v.extent) for i in block.indices if isinstance(v := i.atom, Var)]
    at = tuple(poly(v) for v in iters)
    name = func.fresh_block_name(f"{block.buffer.name}_unpad")
    return nest_over(name, iters, Load(block.buffer, at), Load(source, at))
