"""A lowered program as C11.

The loops stay loops: vector loops and unrolled ones are plain inner loops of constant extent, which a C
compiler turns into vectors and straight-line code; register buffers are small arrays, which it keeps in
registers. Predicates become bounds of loops, or conditions as far outside as they may stand. A tile of
registers is written twice, without predicates for where it is whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ...arith import Atom, Poly, Var, poly, proven_negative
from ...ir import Binary, Block, For, InBounds, LoopKind, PrimFunc, Stmt, walk, walk_expr
from ...ir.func import fresh
from ...runtime import ParamInfo, WorkspaceInfo
from ...target import Target
from ..errors import BuildError, LoweringError
from ..llvm.nest import tile_roots, whole_tile
from .buffers import Buffers
from .dtypes import PRIMARY, PRODUCT, SUM, Text, at_least, is_narrow
from .helpers import Helpers
from .indices import Indices
from .names import identifier
from .values import Values

_INDENT = "    "
#: More operations than this, counted after unrolling, the compiler is not asked for: it would take many
#: seconds. A tile of 24 vectors with four steps of a product has 480 and takes half of one.
MAX_UNROLLED = 640


@dataclass(frozen=True, slots=True)
class Kernel:
    """A function as C: its text, and the helpers it calls by name, each behind those that it calls itself."""

    name: str
    text: str
    helpers: dict[str, str]
    params: tuple[ParamInfo, ...]
    workspaces: tuple[WorkspaceInfo, ...]
    sizes: tuple[str, ...] = ()


def emit(func: PrimFunc, target: Target, *, versioned: bool = True) -> Kernel:
    """The program that the passes gave. `versioned`: whole tiles get a version without predicates.

    Raises BuildError for what has no code.
    """
    return _Emitter(func, target, versioned).run()


class _Emitter:
    def __init__(self, func: PrimFunc, target: Target, versioned: bool) -> None:
        self._func = func
        self._target = target
        self._helpers = Helpers()
        self._buffers = Buffers(func)
        self._loops: dict[Atom, str] = dict(self._buffers.sizes)
        self._indices = Indices(self._helpers, self._loops)
        self._values = Values(self._helpers, self._indices, self._buffers.names)
        self._roots = tile_roots(func) if versioned else set()
        self._taken = {self._buffers.function, *self._buffers.names.values(), *self._loops.values()}
        self._lines: list[str] = []

    def run(self) -> Kernel:
        self._body(self._func.body, 1, frozenset())
        b = self._buffers
        head = [*b.comment(self._target), f"void {b.function}({b.signature})", "{", *b.stack]
        text = "\n".join([*head, *self._lines, "}"]) + "\n"
        sizes = tuple(s.name for s in self._func.sizes)
        return Kernel(b.function, text, self._helpers.texts, b.params, b.workspaces, sizes)

    def _put(self, depth: int, text: str) -> None:
        self._lines.append(_INDENT * depth + text)

    def _body(self, body: Iterable[Stmt], depth: int, known: frozenset[Poly]) -> None:
        for s in body:
            if type(s) is Block:
                self._block(s, depth, known)
            else:
                assert type(s) is For
                self._loop(s, depth, known)

    # ---- loops ----
    def _loop(self, s: For, depth: int, known: frozenset[Poly]) -> None:
        inner = {s.var, *(f.var for path, _ in walk(s.body) for f in path)}
        common = [p for p in _common(s) if p not in known]
        outside = [p for p in common if not p.vars() & inner]
        if outside:
            self._put(depth, f"if ({self._indices.all_negative(outside)}) {{")
            self._for(s, depth + 1, known.union(outside), common, inner)
            self._put(depth, "}")
        else:
            self._for(s, depth, known, common, inner)

    def _for(self, s: For, depth: int, known: frozenset[Poly], common: list[Poly], inner: set[Var]) -> None:
        limits = {p: x for p in common if p not in known and (x := _limit(p, s.var, inner)) is not None}
        bound = self._bound(s.var.extent, limits.values())
        known = known.union(limits)
        name = fresh(identifier(s.var.name), self._taken)
        self._taken.add(name)
        self._loops[s.var] = name
        if s.kind is LoopKind.VECTORIZED:
            self._put(depth, "VECTOR_LOOP")
        elif bound.text.isdecimal() and _is_unrolled(s):
            self._put(depth, f"UNROLL({bound.text})")
        note = "" if s.kind is LoopKind.SERIAL else f" /* {s.kind.value} */"
        self._put(depth, f"for (int64_t {name} = 0; {name} < {at_least(bound, SUM)}; ++{name}) {{{note}")
        if s.var in self._roots and s.kind is LoopKind.SERIAL:
            self._tile(s, depth + 1, known)
        else:
            self._body(s.body, depth + 1, known)
        self._put(depth, "}")
        del self._loops[s.var]
        self._taken.remove(name)

    def _bound(self, extent: Poly, limits: Iterable[tuple[Poly, int]]) -> Text:
        """The number of iterations i with rest + step * i < 0 for each (rest, step) of the limits."""
        bounds: list[Text] = []
        for rest, step in limits:
            if rest.const is not None and extent.const is not None:
                extent = poly(max(0, min(extent.const, -(rest.const // step))))
                continue
            # Where no iteration is wanted, C's division gives 0 or less, which is as good.
            up = self._indices.index(-rest + (step - 1))
            bounds.append(up if step == 1 else Text(f"{at_least(up, PRIMARY)} / {step}", PRODUCT))
        out = self._indices.index(extent)
        for b in bounds:
            out = self._indices.smaller(out, b)
        return out

    def _tile(self, s: For, depth: int, known: frozenset[Poly]) -> None:
        """The body twice: without predicates where the whole tile is in range, and as it stands elsewhere."""
        dropped: dict[Poly, Poly] = {}
        for _, b in walk(s.body):
            for p in b.predicates:
                terms = whole_tile(s, p) if p not in known else None
                if terms is not None:
                    dropped[p] = Poly(terms)
        # A tile that is never whole in a predicate's loops keeps the predicate.
        dropped = {p: q for p, q in dropped.items() if q.const is None or q.const < 0}
        needed = [q for q in dict.fromkeys(dropped.values()) if not proven_negative(q)]
        if not needed:
            self._body(s.body, depth, known.union(dropped))
            return
        self._put(depth, f"if ({self._indices.all_negative(needed)}) {{ /* a whole tile */")
        self._body(s.body, depth + 1, known.union(dropped))
        self._put(depth, "} else { /* a tile at an edge */")
        self._body(s.body, depth + 1, known)
        self._put(depth, "}")

    # ---- blocks ----
    def _block(self, b: Block, depth: int, known: frozenset[Poly]) -> None:
        try:
            assignment = self._assignment(b)
        except BuildError as e:
            raise LoweringError("emit", e.message, self._func, b) from None
        predicates = [p for p in b.predicates if p not in known]
        comment = f"/* {identifier(b.name)} */"
        if predicates:
            self._put(depth, f"if ({self._indices.all_negative(predicates)}) {comment}")
            self._put(depth + 1, assignment)
        else:
            self._put(depth, comment)
            self._put(depth, assignment)

    def _assignment(self, b: Block) -> str:
        if b.init is not None:
            raise BuildError(f"the init of {b.name!r} was not decomposed")
        element, v, dtype = self._values.element(b.buffer, b.indices), b.value, b.buffer.dtype
        wide = dtype.is_float and dtype.bits > 16
        if wide and isinstance(v, Binary) and v.op == "add" and self._values.value(v.a).text == element:
            return f"{element} += {self._values.value(v.b).text};"
        return f"{element} = {self._values.stored(v, dtype)};"


def _common(s: For) -> list[Poly]:
    """The predicates that all blocks under the loop share."""
    blocks = [b for _, b in walk(s.body)]
    return [p for p in blocks[0].predicates if all(p in b.predicates for b in blocks[1:])]


def _limit(p: Poly, v: Var, inner: set[Var]) -> tuple[Poly, int] | None:
    """(rest, step) of p = rest + step * v with a positive step, where the rest does not change inside."""
    step = p.coefficient(v)
    rest = p - poly(v) * step
    return (rest, step) if step > 0 and not rest.vars() & inner else None


def _is_unrolled(s: For) -> bool:
    """Whether the C compiler is asked to unroll a loop: no innermost one, which it may make vectors of."""
    holds_vectors = any(f.kind is LoopKind.VECTORIZED for path, _ in walk(s.body) for f in path)
    return s.kind is LoopKind.UNROLLED and holds_vectors and _unrolled(s) <= MAX_UNROLLED


def _unrolled(s: Stmt) -> int:
    """The operations under a loop that is unrolled, together with unrolled ones inside."""
    if isinstance(s, For):
        copies = (s.var.extent.const or 1) if s.kind is LoopKind.UNROLLED else 1
        return copies * sum(map(_unrolled, s.body))
    count = len(s.predicates) * 4
    for e in walk_expr(s.value):
        # A condition is masks for all that it guards; a 16-bit float is converted in ten instructions.
        count += 4 * len(e.conditions) if isinstance(e, InBounds) else 5 if is_narrow(e.dtype) else 1
    return count
