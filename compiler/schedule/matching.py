"""Whether a nest computes what an intrinsic describes, and where its arrays lie in the program's buffers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..arith import Atom, Poly, Var, is_injective, poly, substitute
from ..ir import (
    Binary,
    Block,
    Buffer,
    Cast,
    Compare,
    Const,
    Expr,
    For,
    Load,
    LoopKind,
    Select,
    Unary,
    map_expr,
)
from ..ir.spelling import expr
from ..ir.stmt import IterKind

_COMMUTATIVE = frozenset({"add", "mul", "min", "max", "and", "or", "xor"})


class Mismatch(ValueError):
    """The first difference between a nest and a description."""


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """Where a parameter of an intrinsic lies: its element x is `buffer[base + steps · x]`.

    base: for each dimension of the buffer, over the loops around the nest and those iteration variables of
    the block that are bound to such loops only. steps: for each dimension of the buffer, (dimension of the
    parameter, stride) pairs.
    """

    buffer: Buffer
    base: tuple[Poly, ...]
    steps: tuple[tuple[tuple[int, int], ...], ...]

    def at(self, indices: Sequence[Poly], base: Sequence[Poly]) -> tuple[Poly, ...]:
        """The element's indices, from a base that may be spelled over other variables."""
        out: list[Poly] = []
        for start, steps in zip(base, self.steps, strict=True):
            total = start
            for d, stride in steps:
                total = total + indices[d] * stride
            out.append(total)
        return tuple(out)

    def same(self, other: Place) -> bool:
        """Whether two reads of one parameter are at one place."""
        return (self.buffer, self.base, self.steps) == (other.buffer, other.base, other.steps)


Places = dict[Buffer, Place]


def match_nest(loops: Sequence[Var], described: Block, path: Sequence[For], block: Block) -> Places:
    """Where each parameter of a description lies, when the nest `path` (the loops from the unit's inwards)
    around `block` computes what the description does over its `loops`. Raises Mismatch."""
    theirs = [v for v in loops if v.extent.const != 1]
    ours = [f for f in path if f.var.extent.const != 1]
    for f in ours:
        if f.kind is not LoopKind.SERIAL:
            raise Mismatch(f"loop {f.var.name!r} is {f.kind} already")
    if len(ours) != len(theirs):
        raise Mismatch(f"the nest has {len(ours)} loops, the description {len(theirs)}")
    units: dict[Atom, Poly] = {f.var: poly(0) for f in path if f.var.extent.const == 1}
    pairs: dict[Var, Var] = {}
    for f, v in zip(ours, theirs, strict=True):
        if f.var.extent != v.extent:
            raise Mismatch(
                f"loop {f.var.name!r} runs {f.var.extent!r} times, {v.name!r} of the description "
                f"{v.extent!r} times"
            )
        mine = f.var in block.loop_vars(IterKind.REDUCE)
        if mine != (v in described.loop_vars(IterKind.REDUCE)):
            words = ("reduces", "does not") if mine else ("does not reduce", "does")
            raise Mismatch(f"loop {f.var.name!r} {words[0]}, {v.name!r} of the description {words[1]}")
        pairs[f.var] = v
    _match_inits(block, described)
    binding = {it: substitute(b, units) for it, b in block.binding.items()}
    moving = {it: b for it, b in binding.items() if b.vars() & set(pairs)}
    matcher = _Matcher(pairs, moving, described.binding)
    places = matcher.access(Load(block.buffer, block.indices), Load(described.buffer, described.indices), {})
    places = matcher.value(block.value, described.value, places)
    _check_output(block, described, places, set(pairs))
    return places


def _match_inits(block: Block, described: Block) -> None:
    a, b = block.init, described.init
    if a is not None and b is None:
        raise Mismatch(
            f"{block.name!r} has its init, and the description adds to what is there; "
            "decompose_reduction first"
        )
    if a is None and b is not None:
        raise Mismatch(f"the description begins with an init, and that of {block.name!r} was decomposed")
    if a is not None and b is not None and not _same_constant(a, b):
        raise Mismatch(f"{block.name!r} begins with {expr(a)}, the description with {expr(b)}")


def _same_constant(a: Expr, b: Expr) -> bool:
    return type(a) is Const and type(b) is Const and a.dtype == b.dtype and repr(a.value) == repr(b.value)


def _check_output(block: Block, described: Block, places: Places, inner: set[Var]) -> None:
    """Each element of the output is one of the buffer, which is no input."""
    out = places[described.buffer]
    for p, place in places.items():
        if p is not described.buffer and place.buffer is out.buffer:
            raise Mismatch(f"{out.buffer.name} is written and read as {p.name}")
    moving = inner & block.loop_vars(IterKind.SPATIAL)
    if not is_injective(block.bound_indices(), out.buffer.shape, moving):
        raise Mismatch(f"several instances write one element of {out.buffer.name}")


@dataclass(frozen=True, slots=True, eq=False)
class _Matcher:
    """pairs: loop of the nest -> loop of the description. ours, theirs: bindings of the two blocks."""

    pairs: Mapping[Var, Var]
    ours: Mapping[Atom, Poly]
    theirs: Mapping[Atom, Poly]

    def access(self, a: Load, b: Load, known: Places) -> Places:
        """Where the described access lies."""
        if a.dtype != b.dtype:
            raise Mismatch(f"{a.buffer.name} holds {a.dtype}, {b.buffer.name} of the description {b.dtype}")
        dims = {self._their_loop(i): d for d, i in enumerate(b.indices)}
        base: list[Poly] = []
        steps: list[tuple[tuple[int, int], ...]] = []
        for i in a.indices:
            p = substitute(i, self.ours)
            rest, strides = p, list[tuple[int, int]]()
            for m, c in p.terms.items():
                v = m[0] if len(m) == 1 else None
                if isinstance(v, Var) and v in self.pairs:
                    if self.pairs[v] not in dims:
                        what = f"{a.buffer.name} at {p!r} moves with loop {v.name!r}"
                        raise Mismatch(f"{what}, {b.buffer.name} of the description does not")
                    strides.append((dims[self.pairs[v]], c))
                    rest = rest - Poly({m: c})
            if rest.vars() & set(self.pairs):
                raise Mismatch(f"{a.buffer.name} is indexed by {p!r}, whose loops do not come apart")
            base.append(rest)
            steps.append(tuple(sorted(strides)))
        place = Place(a.buffer, tuple(base), tuple(steps))
        before = known.get(b.buffer)
        if before is not None and not before.same(place):
            raise Mismatch(f"{b.buffer.name} of the description would lie at two places of {a.buffer.name}")
        return {**known, b.buffer: place}

    def _their_loop(self, index: Poly) -> Var:
        v = index.atom
        assert v is not None
        loop = self.theirs[v].atom
        assert isinstance(loop, Var)
        return loop

    def value(self, a: Expr, b: Expr, known: Places) -> Places:
        """Where everything lies that is read by the two values, which compute the same."""
        if type(a) is not type(b):
            raise self._differ(a, b)
        match a, b:
            case Load(), Load():
                return self.access(a, b, known)
            case Const(), Const():
                if not _same_constant(a, b):
                    raise self._differ(a, b)
                return known
            case (Binary(), Binary()) | (Compare(), Compare()):
                return self._pair(a, b, known)  # type: ignore[arg-type]
            case Unary(), Unary():
                if a.op != b.op:
                    raise self._differ(a, b)
                return self.value(a.a, b.a, known)
            case Cast(), Cast():
                if a.dtype != b.dtype:
                    raise self._differ(a, b)
                return self.value(a.a, b.a, known)
            case Select(), Select():
                known = self.value(a.cond, b.cond, known)
                return self.value(a.b, b.b, self.value(a.a, b.a, known))
        raise self._differ(a, b)

    def _pair(self, a: Binary | Compare, b: Binary | Compare, known: Places) -> Places:
        if a.op != b.op:
            raise self._differ(a, b)
        try:
            return self.value(a.b, b.b, self.value(a.a, b.a, known))
        except Mismatch:
            if a.op not in _COMMUTATIVE:
                raise
            try:
                return self.value(a.a, b.b, self.value(a.b, b.a, known))
            except Mismatch:
                pass
            raise

    def _differ(self, a: Expr, b: Expr) -> Mismatch:
        ours = expr(map_expr(a, lambda p: substitute(p, self.ours)))
        theirs = expr(map_expr(b, lambda p: substitute(p, self.theirs)))
        return Mismatch(f"the block computes {ours}, where the description computes {theirs}")
