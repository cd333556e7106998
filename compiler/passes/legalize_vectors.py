"""Vector loops as wide as the machine's registers."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..arith import Atom, Poly, Var, poly, substitute
from ..ir import Block, Buffer, For, LoopKind, PrimFunc, Stmt, loads, rewrite, walk, widest_value


@dataclass(frozen=True, slots=True)
class LegalizeVectors:
    """Every vector loop gets a power of two of lanes that fits into one machine register.

    before: `for i in vectorized(40): …` with 16 lanes
    after: `for i_0 in unrolled(3): for i_1 in vectorized(16): if i_0 * 16 + i_1 < 40: …`

    The widest element that is computed with under the loop decides. Loops that share a register buffer get
    the same number of lanes, since its values are whole vectors. The part that is no multiple is masked,
    unless narrower vectors that divide the extent are hardly more.

    vector_bytes: bytes of a machine register. unroll_limit: with more vectors than this the outer loop
    stays a loop, where no register buffer needs it unrolled.
    """

    vector_bytes: int
    unroll_limit: int = 16

    def run(self, func: PrimFunc) -> PrimFunc:
        lanes = _lanes(func, self.vector_bytes)

        def visit(s: Stmt) -> Stmt:
            if type(s) is not For or s.kind is not LoopKind.VECTORIZED:
                return s
            extent = _extent(s.var)
            width = _width(extent, lanes[s.var])
            return s if width == extent else self._split(s, extent, width)

        return func.rewrite(visit) if lanes else func

    def _split(self, loop: For, extent: int, width: int) -> For:
        count = -(-extent // width)
        outer, inner = Var(f"{loop.var.name}_0", count), Var(f"{loop.var.name}_1", width)
        index = poly(inner) if count == 1 else poly(outer) * width + inner
        values: dict[Atom, Poly] = {loop.var: index}
        tail = (index - extent,) if extent % width else ()

        def bind(s: Stmt) -> Stmt:
            if type(s) is not Block:
                return s
            return replace(
                s,
                binds=tuple(substitute(b, values) for b in s.binds),
                predicates=(*(substitute(p, values) for p in s.predicates), *tail),
            )

        lane_kind = LoopKind.VECTORIZED if width > 1 else LoopKind.SERIAL
        body = For(inner, rewrite(loop.body, bind), lane_kind, loop.annotations)
        if count == 1:
            return body
        unrolled = count <= self.unroll_limit or any(_registers(b) for _, b in walk(loop.body))
        return For(outer, (body,), LoopKind.UNROLLED if unrolled else LoopKind.SERIAL)


def _extent(v: Var) -> int:
    assert v.extent.const is not None
    return v.extent.const


def _width(extent: int, lanes: int) -> int:
    """The power of two that covers the extent best."""
    whole = min(lanes, extent & -extent)
    masked = min(lanes, 1 << (extent - 1).bit_length())
    return whole if 2 * (extent // whole) <= 3 * -(-extent // masked) else masked


def _lanes(func: PrimFunc, vector_bytes: int) -> dict[Var, int]:
    """The most lanes of each vector loop."""
    lanes: dict[Var, int] = {}
    sharing: dict[Buffer, set[Var]] = {}
    for path, b in func.blocks():
        for f in path:
            if f.kind is LoopKind.VECTORIZED:
                fit = max(1, vector_bytes // widest_value(b))
                lanes[f.var] = min(fit, lanes.get(f.var, fit))
                for r in _registers(b):
                    sharing.setdefault(r, set()).add(f.var)
    changed = True
    while changed:
        changed = False
        for group in sharing.values():
            least = min(lanes[v] for v in group)
            changed |= any(lanes[v] != least for v in group)
            lanes.update(dict.fromkeys(group, least))
    return lanes


def _registers(b: Block) -> list[Buffer]:
    """The register buffers that the block touches."""
    return [x for x in (b.buffer, *(y.buffer for y in loads(b.value))) if x.scope == "register"]
