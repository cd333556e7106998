"""Single accesses, as features see them: how they walk through memory."""

from __future__ import annotations

from dataclasses import replace
from math import gcd

from ..arith import Atom, Fn, Poly, Var, substitute
from ..ir import Binary, Block, Buffer, Cast, Compare, InBounds, Select, Unary, loads, walk_expr

#: Bytes of a cache line, and of what the sets of a first-level cache repeat after (64 sets).
LINE = 64
PAGE = 4096
#: Lanes up to this many elements apart are read by whole vectors.
MAX_STRIDE = 4
_INSTRUCTIONS: dict[type, int] = {Binary: 1, Compare: 1, Select: 1, Cast: 1, Unary: 1}
#: More of them for an elementary function.
_FUNCTION = 15


def relax(p: Poly) -> Poly:
    """An overlapped tile's base min(a, E - tile) spans what a spans."""
    values: dict[Atom, Poly] = {a: a.a for a in p.atoms() if isinstance(a, Fn) and a.op == "min"}
    return substitute(p, values) if values else p


def operations(block: Block) -> int:
    """About how many instructions compute one element, or one vector of them, without reads, writes and
    guards."""
    count = 0
    for e in walk_expr(block.value):
        guards = type(e) is Select and type(e.cond) is InBounds
        count += 0 if guards else _INSTRUCTIONS.get(type(e), 0)
        if type(e) is Unary and e.op not in ("neg", "abs", "not"):
            count += _FUNCTION
    return count


def as_walked(buffer: Buffer, indices: tuple[Poly, ...]) -> tuple[Buffer, tuple[Poly, ...]]:
    """Dimensions that one loop walks through as one: `[i // W, i % W]` of H x W is `[i]` of H * W."""
    shape, out = list(buffer.shape), list(indices)
    for d in range(len(out) - 2, -1, -1):
        if any(isinstance(a, Fn) and a.op == "floordiv" and a.vars for a in out[d].atoms()):
            both = out[d] * shape[d + 1] + out[d + 1]
            if not any(isinstance(a, Fn) and a.op == "floordiv" and a.vars for a in both.atoms()):
                out[d : d + 2], shape[d : d + 2] = [both], [shape[d] * shape[d + 1]]
    return (
        (buffer, indices) if len(out) == len(indices) else (replace(buffer, shape=tuple(shape)), tuple(out))
    )


def row_places(buffer: Buffer) -> int:
    """At how many different places of a page the rows of a buffer start; the copies that the schedule makes
    are dense panels."""
    if buffer.scope != "global" or len(buffer.shape) < 2:
        return PAGE // LINE
    stride = (buffer.shape[-1].const or 1) * buffer.dtype.bytes
    return min(PAGE // LINE, PAGE // gcd(PAGE, stride))


def stride_class(indices: tuple[Poly, ...], lane: Var | None, most: int, last: int) -> str:
    """0, 1 or 2 of an access, whose dimension `last` is the one along which elements lie side by side."""
    moving = [d for d, i in enumerate(indices) if lane is not None and lane in i.vars()]
    if lane is None or not moving:
        return "0.0"
    index = indices[moving[0]]
    whole = not any(isinstance(a, Fn) and lane in a.vars for a in index.atoms())
    return "1.0" if moving == [last] and whole and 1 <= index.coefficient(lane) <= most else "2.0"


def is_contiguous_in(b: Block, lane: Var) -> bool:
    """Whether every read of the block moves by one element with the lane, or not at all. What registers hold
    is turned in registers."""
    m = b.binding
    for x in loads(b.value):
        if x.buffer.scope == "register":
            continue
        last = [substitute(i, m) for i in x.indices]
        if any(lane in i.vars() for i in last[:-1]) or (
            last and lane in last[-1].vars() and last[-1].coefficient(lane) != 1
        ):
            return False
    return True
