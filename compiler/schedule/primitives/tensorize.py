"""tensorize: a nest replaced by the implementation of an intrinsic."""

from __future__ import annotations

from dataclasses import replace

from ...arith import Atom, Poly, Var, poly, substitute
from ...ir import Block, Buffer, For, IterKind, Load, PrimFunc, Stmt, loads, map_expr
from ...ir.annotations import INTRINSIC, UNIT
from ...ir.func import fresh
from ..errors import ScheduleError
from ..find import blocks_under, find_block, find_loop, find_unit
from ..intrinsics import IntrinsicError, TensorIntrin, described_block, tensor_intrin
from ..matching import Mismatch, Place, Places, match_nest
from ..overlap import check_overlaps
from .blockize import blockize, check_blockize


def check_tensorize(
    func: PrimFunc, at: For, name: str
) -> tuple[TensorIntrin, tuple[For, ...], Block, Places]:
    """A known intrinsic, whose description the one block under the loop computes: the loops around the nest,
    the block, and where the intrinsic's parameters lie."""
    if not isinstance(name, str):
        reason = f"an intrinsic is named by a string, got {name!r}"
        raise ScheduleError("tensorize", reason, func, at)
    try:
        intrinsic = tensor_intrin(name)
    except IntrinsicError as e:
        raise ScheduleError("tensorize", str(e), func, at) from None
    under = list(blocks_under(at))
    if len(under) != 1:
        reason = f"the nest holds {len(under)} blocks, the description of {name!r} is one"
        raise ScheduleError("tensorize", reason, func, at)
    (inner, block), (path, _) = under[0], find_block(func, under[0][1].name, "tensorize")
    outer = path[: len(path) - len(inner)]
    loops, described = described_block(intrinsic.desc)
    try:
        places = match_nest(loops, described, inner, block)
    except Mismatch as e:
        raise ScheduleError("tensorize", f"this is not {name!r}: {e}", func, at) from None
    carried = block.loop_vars(IterKind.REDUCE)
    if block.init is not None and any(f.var in carried for f in outer):
        reason = f"{block.name!r} would begin anew in each iteration of the loops that carry its reduction"
        raise ScheduleError("tensorize", f"{reason}; decompose_reduction first", func, at)
    return intrinsic, outer, block, places


def tensorize(func: PrimFunc, loop: Var | None, unit: str | None, name: str) -> PrimFunc:
    """Replaces what stands under a loop, or in a unit, by the implementation of the intrinsic `name`, whose
    description it matches.

    before: `for j in range(16): for k in range(4): C[i, j0 * 16 + j] += int32(A[i, k0 * 4 + k]) *
    int32(B[j0, k0, j, k])`
    after `tensorize(j, "dot_16x4_i8i8i32")`: the loops and blocks of the implementation, over those parts of
    A, B and C, as one unit

    The nest must compute the description up to names, the order of commutative operands, and where its
    arrays begin and how they step; the first difference is named otherwise. Units are made as by `blockize`,
    and its refusals are those of this step.
    """
    if unit is not None:
        _, at = find_unit(func, unit, "tensorize")
        if any(k == INTRINSIC for k, _ in at.annotations):
            raise ScheduleError("tensorize", f"the unit {unit!r} is an intrinsic already", func, at)
    else:
        assert loop is not None
        at = find_loop(func, loop, "tensorize")
        check_blockize(func, at, "tensorize")
    intrinsic, outer, block, places = check_tensorize(func, at, name)
    if unit is None:
        func, unit = blockize(func, at.var)
    put = _Implementation(func, intrinsic, outer, block, places)
    body = put.body()
    tags = ((INTRINSIC, name), (UNIT, unit))
    if len(body) == 1 and type(body[0]) is For:
        whole = replace(
            body[0], annotations=tuple(sorted({**dict(body[0].annotations), **dict(tags)}.items()))
        )
    else:
        whole = For(Var(fresh("unit", {f.var.name for f in outer}), 1), body, annotations=tags)

    def visit(s: Stmt) -> Stmt:
        return whole if type(s) is For and s.var is at.var else s

    new = replace(func.rewrite(visit), allocs=(*func.allocs, *put.allocs.values()))
    check_overlaps(new, "tensorize")
    return new


class _Implementation:
    """Copies an implementation into the place of a nest: its parameters become parts of the program's
    buffers, its own buffers, blocks and loops new ones."""

    def __init__(
        self, func: PrimFunc, intrinsic: TensorIntrin, outer: tuple[For, ...], block: Block, places: Places
    ) -> None:
        self.impl, self.outer, self.target = intrinsic.impl, outer, block
        params = zip(intrinsic.desc.params, intrinsic.impl.params, strict=True)
        self.places: dict[Buffer, Place] = {b: places[a] for a, b in params}
        self.names = {b.name for _, b in func.blocks()}
        self.loops: dict[Atom, Poly] = {}
        self.loop_names = {f.var.name for f in outer}
        self.allocs: dict[Buffer, Buffer] = {}
        taken = {b.name for b in func.params + func.allocs}
        for b in intrinsic.impl.allocs:
            self.allocs[b] = replace(b, name=fresh(f"{block.name}_{b.name}", taken))
            taken.add(self.allocs[b].name)
        #: The last block keeps the name of the block that it replaces, so that its handle stays valid.
        self.last = [b for _, b in self.impl.blocks()][-1]

    def body(self) -> tuple[Stmt, ...]:
        return tuple(self._statement(s) for s in self.impl.body)

    def _statement(self, s: Stmt) -> Stmt:
        if type(s) is Block:
            return self._block(s)
        assert type(s) is For
        var = Var(fresh(s.var.name, self.loop_names), s.var.extent)
        self.loops[s.var] = poly(var)
        return replace(s, var=var, body=tuple(self._statement(x) for x in s.body))

    def _block(self, b: Block) -> Block:
        target = self.target
        own = {v: Var(v.name, v.extent) for v in b.iters}
        m: dict[Atom, Poly] = {v: poly(w) for v, w in own.items()}
        around = self._around(b)
        outer: dict[Atom, Poly] = {v: poly(w) for v, (w, _, _) in around.items()}

        def put(x: Load) -> Load:
            place = self.places.get(x.buffer)
            if place is None:
                return Load(self.allocs[x.buffer], x.indices)
            return Load(place.buffer, place.at(x.indices, [substitute(p, outer) for p in place.base]))

        def moved(p: Poly) -> Poly:
            return substitute(p, m)

        written = put(Load(b.buffer, tuple(map(moved, b.indices))))
        name = target.name
        if b is not self.last:
            name = fresh(f"{target.name}_{b.name}", self.names)
            self.names.add(name)
        kept = target.annotations if b.buffer in self.places else ()
        return Block(
            name,
            (*(w for w, _, _ in around.values()), *own.values()),
            (*(k for _, _, k in around.values()), *b.kinds),
            (*(p for _, p, _ in around.values()), *(substitute(p, self.loops) for p in b.binds)),
            written.buffer,
            written.indices,
            map_expr(b.value, moved, put),
            None if b.init is None else map_expr(b.init, moved, put),
            (*target.predicates, *(substitute(p, self.loops) for p in b.predicates)),
            tuple(sorted({**dict(kept), **dict(b.annotations)}.items())),
            target.span,
        )

    def _around(self, b: Block) -> dict[Var, tuple[Var, Poly, IterKind]]:
        """What lies outside of the nest and moves the block, as new iteration variables with their bindings:
        outer loops, and iteration variables of the block that is replaced. For a block that adds to an output
        these are also the ones that carry the reduction."""
        target = self.target
        touched = {b.buffer, *(x.buffer for x in loads(b.value))}
        used = {v for t in touched if t in self.places for p in self.places[t].base for v in p.vars()}
        adds = b.buffer in self.places and any(x.buffer is b.buffer for x in loads(b.value))
        loops = [f.var for f in self.outer]
        carried = target.loop_vars(IterKind.REDUCE).intersection(loops)
        reduces = {it for it, k in zip(target.iters, target.kinds, strict=True) if k is IterKind.REDUCE}
        if adds:
            whole = [it for it in target.iters if it in used]
            bound = {v for it in whole for v in target.binding[it].vars()}
            used |= carried - bound
        found: dict[Var, tuple[Var, Poly, IterKind]] = {}
        for v in (*loops, *target.iters):
            if v in used:
                kind = IterKind.REDUCE if adds and v in carried | reduces else IterKind.SPATIAL
                found[v] = Var(v.name, v.extent), target.binding.get(v, poly(v)), kind

        def depth(v: Var) -> int:
            return min((loops.index(x) for x in found[v][1].vars()), default=len(loops))

        return {v: found[v] for v in sorted(found, key=depth)}
