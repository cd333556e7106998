"""Whether statements use the same element in different iterations of a loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from ..arith import Atom, Fn, Poly, Var, is_injective, poly, proven_negative, substitute
from ..ir import Block, Buffer, For, Stmt, loads
from .find import blocks_under


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """One use of a buffer by a block: its indices over the loop variables around the block."""

    block: Block
    buffer: Buffer
    indices: tuple[Poly, ...]
    is_write: bool


def accesses(statements: Iterable[Stmt]) -> Iterator[Access]:
    """Every access of the blocks under the statements, in program order; a write before its block's reads."""
    for s in statements:
        for _, b in blocks_under(s):
            yield Access(b, b.buffer, b.bound_indices(), True)
            m = b.binding
            for x in loads(b.value):
                yield Access(b, x.buffer, tuple(substitute(i, m) for i in x.indices), False)


def inner_loops(statements: Iterable[Stmt]) -> set[Var]:
    """The variables of all loops among and under the statements."""
    return {f.var for s in statements for path, _ in blocks_under(s) for f in path}


def crossing(
    first: For,
    second: For,
    private: AbstractSet[Buffer] = frozenset(),
    counts: Callable[[Access, Access], bool] = lambda a, b: True,
) -> tuple[Access, Access] | None:
    """Two accesses, one under each of two loops of equal extent and one of them a write, that may use one
    element in different iterations; None when it is proved that there are none.

    private: buffers that do not count. counts: the pairs that do. With a loop and itself the second one
    stands for its other iterations.
    """
    inner = (inner_loops(first.body), inner_loops(second.body))
    theirs = [a for a in accesses(second.body) if a.buffer not in private]
    var = second.var
    if second.var is first.var:
        var = Var(second.var.name, second.var.extent)
        other: dict[Atom, Poly] = {v: poly(Var(v.name, v.extent)) for v in inner[1]}
        other[first.var] = poly(var)
        theirs = [
            Access(a.block, a.buffer, tuple(substitute(i, other) for i in a.indices), a.is_write)
            for a in theirs
        ]
        inner = inner[0], {v for p in other.values() for v in p.vars()} - {var}
    for a in accesses(first.body):
        for b in theirs:
            if (
                a.buffer is b.buffer
                and (a.is_write or b.is_write)
                and counts(a, b)
                and not _same_iteration(a, b, (first.var, var), inner[0] | inner[1])
            ):
                return a, b
    return None


def _same_iteration(a: Access, b: Access, loops: tuple[Var, Var], inner: AbstractSet[Var]) -> bool:
    """Whether the two use one element only where the two loop variables are equal; other variables outside of
    `inner` are the same for both."""
    pairs = list(zip(a.indices, b.indices, strict=True))
    if any(proven_negative(p - q) or proven_negative(q - p) for p, q in pairs):
        return True
    if any(_told_apart(p, q, loops) for p, q in pairs):
        return True
    v, w = loops
    equal = [
        (p, extent)
        for (p, q), extent in zip(pairs, a.buffer.shape, strict=True)
        if not p.vars() & inner and substitute(q, {w: poly(v)}) == p
    ]
    return is_injective([p for p, _ in equal], [e for _, e in equal], {v})


def _told_apart(p: Poly, q: Poly, loops: tuple[Var, Var]) -> bool:
    """p = stride * v + r and q = stride * w + s, with r and s closer together than one stride."""
    one, other = _stride(p, loops[0]), _stride(q, loops[1])
    if one is None or other is None or one[0] != other[0]:
        return False
    stride, gap = one[0], one[1] - other[1]
    return proven_negative(gap - stride) and proven_negative(-gap - stride)


def _stride(p: Poly, v: Var) -> tuple[Poly, Poly] | None:
    """(stride, rest) where p == stride * v + rest and neither holds v."""
    stride, rest = poly(0), poly(0)
    for m, c in p.terms.items():
        if any(type(x) is Fn and v in x.vars for x in m) or m.count(v) > 1:
            return None
        if v in m:
            others = list(m)
            others.remove(v)
            stride = stride + Poly({tuple(others): c})
        else:
            rest = rest + Poly({m: c})
    return (stride, rest) if stride.terms and not stride.vars() else None


def covers(wider: Sequence[tuple[Poly, Poly]], narrower: Sequence[tuple[Poly, Poly]]) -> bool:
    """Whether one box of (base, span) is proved to hold another one."""
    return all(
        proven_negative(w - n - 1) and proven_negative(n + n_span - w - w_span - 1)
        for (w, w_span), (n, n_span) in zip(wider, narrower, strict=True)
    )
