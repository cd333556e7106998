"""Loops: unrolled ones as straight-line code, what serial ones carry as phi nodes, tiles in two versions."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd

from ...arith import Poly, Var, poly
from ...ir import Block, Buffer, For, LoopKind, Stmt, walk
from .builder import Builder, Scope
from .conditions import Condition, Conditions, Facts
from .indices import Indices, Terms
from .nest import Limit, limit_of, whole_tile
from .parallel import Parallel
from .point import Point
from .registers import Cell, Key, Registers


class Loops:
    """Emits statements; `block` emits one instance of a block at the current point, `together` all iterations
    of an unrolled loop at once where it can, and answers whether it did.

    roots: the loops whose bodies get a version without predicates, for tiles that are whole.
    """

    def __init__(
        self, builder: Builder, point: Point, indices: Indices, conditions: Conditions, registers: Registers,
        block: Callable[[Block], None], together: Callable[[For], bool], roots: set[Var],
        parallel: Parallel,
    ) -> None:  # fmt: skip
        self._b = builder
        self._point = point
        self._indices = indices
        self._conditions = conditions
        self._registers = registers
        self._block = block
        self._together = together
        self._roots = roots
        self._parallel = parallel
        self._limits: dict[Var, Limit | None] = {}

    def body(self, statements: tuple[Stmt, ...]) -> None:
        """Every statement at the current point."""
        point = self._point
        for s in statements:
            if type(s) is Block:
                self._block(s)
                continue
            assert type(s) is For
            if s.kind is LoopKind.UNROLLED:
                if self._together(s):
                    continue
                for n in range(s.var.extent.const or 0):
                    point.unrolled[s.var] = n
                    self.body(s.body)
                point.unrolled.pop(s.var, None)
            elif s.kind is LoopKind.VECTORIZED:
                point.lane, point.lanes = s.var, s.var.extent.const
                self.body(s.body)
                point.lane = point.lanes = None
            else:
                self._serial(s)

    # ---- serial loops ----
    def _serial(self, s: For) -> None:
        trip, limit = self._trip(s)
        if type(trip) is int and trip <= 1:
            if trip == 1:
                self._point.unrolled[s.var] = 0
                self.body(s.body)
                del self._point.unrolled[s.var]
            return
        if self._parallel.runs(s):
            self._launched(s, trip, limit)
            return
        b, registers = self._b, self._registers
        enters = type(trip) is int or (
            s.var.extent.const is not None and (limit is None or self._enters(limit))
        )
        number = b.number()
        head, after = f"h{number}", f"x{number}"
        outer = b.scope
        entering: Condition = True
        if not enters:
            entering = b.pure("icmp sgt i64 {}, 0", trip), False
        before = dict(registers.cells)
        b.scopes.append(Scope(head))
        iv = b.name()
        self._point.names[s.var] = iv
        carried = self._carried(s)
        phis: list[tuple[Key, str, Cell]] = []
        for key in [k for k in before if k[0] in carried]:
            cell = before[key]
            phis.append((key, b.name(), cell))
            registers.cells[key] = cell._replace(value=phis[-1][1])
        self._iteration(s, limit)
        inner = b.scopes.pop()
        self._close(s, outer, inner, (head, after), iv, trip, entering, phis, before)

    def _iteration(self, s: For, limit: Limit | None) -> None:
        facts = self._conditions.facts
        if limit is not None:
            self._conditions.facts = self._with_fact(facts, limit.terms + poly(s.var) * limit.step)
        if s.var in self._roots and self._point.lane is None:
            self._tile(s)
        else:
            self.body(s.body)
        self._conditions.facts = facts

    def _launched(self, s: For, trip: str | int, limit: Limit | None) -> None:
        """The loop over some of its iterations in a function that threads call. Nothing goes round in
        registers, and what was in them before stays with the launching thread."""
        b, before = self._b, dict(self._registers.cells)
        with self._parallel.body(s, trip) as (begin, end):
            number = b.number()
            head, after = f"h{number}", f"x{number}"
            outer = b.scope
            b.scopes.append(Scope(head))
            iv = b.name()
            self._point.names[s.var] = iv
            self._iteration(s, limit)
            inner = b.scopes.pop()
            self._close(s, outer, inner, (head, after), iv, end, True, [], before, begin)

    def _close(
        self, s: For, outer: Scope, inner: Scope, labels: tuple[str, str], iv: str, trip: str | int,
        entering: Condition, phis: list[tuple[Key, str, Cell]], before: dict[Key, Cell], first: str = "0",
    ) -> None:  # fmt: skip
        """Puts the finished body behind the code before the loop, whose variable runs from `first` on."""
        head, after = labels
        b, registers = self._b, self._registers
        lines, start = outer.lines, outer.label
        next_, more = b.name(), b.name()
        if entering is True:
            lines.append(f"  br label %{head}")
        else:
            assert not isinstance(entering, bool)
            lines.append(f"  br i1 {entering[0]}, label %{head}, label %{after}")
        lines.append(f"{head}:")
        lines.append(f"  {iv} = phi i64 [ {first}, %{start} ], [ {next_}, %{inner.label} ]")
        for key, name, cell in phis:
            last = registers.cells[key].value
            kind = cell.kind(key[0])
            lines.append(f"  {name} = phi {kind} [ {cell.value}, %{start} ], [ {last}, %{inner.label} ]")
        lines += inner.lines
        lines.append(f"  {next_} = add nuw nsw i64 {iv}, 1")
        lines.append(f"  {more} = icmp slt i64 {next_}, {trip}")
        lines.append(f"  br i1 {more}, label %{head}, label %{after}")
        lines.append(f"{after}:")
        cells = {k: registers.cells[k] for k in before}
        for key, _, _ in phis:
            b.leave(cells[key].value)
        if entering is not True:
            for key, _, cell in phis:
                merged = b.name()
                kind, last = cell.kind(key[0]), cells[key].value
                lines.append(
                    f"  {merged} = phi {kind} [ {cell.value}, %{start} ], [ {last}, %{inner.label} ]"
                )
                cells[key] = cell._replace(value=merged)
        registers.restore(cells)
        outer.label = after
        b.spend(6 + 2 * len(phis))
        del self._point.names[s.var]

    def _carried(self, s: For) -> set[Buffer]:
        """The register buffers that the loop writes: their values go round."""
        return {b.buffer for _, b in walk(s.body) if b.buffer.scope == "register"}

    def _trip(self, s: For) -> tuple[str | int, Limit | None]:
        """The number of iterations: not those from which on every block is predicated off."""
        extent = self._indices.scalar(s.var.extent)
        if s.var not in self._limits:
            self._limits[s.var] = limit_of(s)
        limit = self._limits[s.var]
        if limit is None or self._conditions.moves_with_lane(limit.terms):
            return extent, None
        index = self._indices.at(limit.terms)
        n = self._indices.total({m: -c for m, c in index.terms.items()}, limit.step - 1 - index.constant)
        if type(n) is int and type(extent) is int:
            return max(0, min(extent, n // limit.step)), limit
        if limit.step > 1:
            n = self._b.pure("sdiv i64 {}, {}", n, limit.step)
        self._b.declare("i64", "@llvm.smin.i64", "i64", "i64")
        return self._b.pure("call i64 @llvm.smin.i64(i64 {}, i64 {})", n, extent), limit

    def _enters(self, limit: Limit) -> bool:
        """Whether the first iteration is known to exist."""
        index = self._indices.at(limit.terms)
        return self._conditions.implied(index.terms, index.constant)

    def _with_fact(self, facts: Facts, p: Poly) -> Facts:
        index = self._indices.at(p)
        return {**facts, frozenset(index.terms.items()): index.constant}

    # ---- tiles ----
    def _tile(self, s: For) -> None:
        """The body twice: without predicates where the whole tile is in range, and as it stands elsewhere."""
        needed = self._needed(s)
        if not needed:
            self.body(s.body)
            return
        b, registers, conditions = self._b, self._registers, self._conditions
        whole: Condition = True
        for terms, constant in needed:
            whole = conditions.both(
                whole, (b.pure("icmp slt i64 {}, 0", self._indices.total(terms, constant)), False)
            )
        assert not isinstance(whole, bool)
        number = b.number()
        yes, no, end = f"f{number}", f"m{number}", f"e{number}"
        outer, facts, before = b.scope, conditions.facts, dict(registers.cells)
        new: Facts = {frozenset(terms.items()): constant for terms, constant in needed}
        ends: list[tuple[str, dict[Key, Cell]]] = []
        text: list[str] = []
        for label, known in ((yes, new), (no, {})):
            conditions.facts = {**facts, **known}
            b.scopes.append(Scope(label))
            self.body(s.body)
            scope = b.scopes.pop()
            ends.append((scope.label, {k: registers.cells[k] for k in before}))
            registers.restore(before)
            text += [f"{label}:", *scope.lines, f"  br label %{end}"]
        conditions.facts = facts
        # Not before: what the bodies share was put behind the outer scope's last line.
        outer.lines += [f"  br i1 {whole[0]}, label %{yes}, label %{no}", *text, f"{end}:"]
        outer.label = end
        (left, first), (right, second) = ends
        merged = dict(before)
        for key, cell in first.items():
            other = second[key]
            merged[key] = cell
            if cell.value != other.value:
                name, kind = b.name(), cell.kind(key[0])
                outer.lines.append(
                    f"  {name} = phi {kind} [ {cell.value}, %{left} ], [ {other.value}, %{right} ]"
                )
                merged[key] = cell._replace(value=name)
        registers.restore(merged)
        b.spend(3)

    def _needed(self, s: For) -> list[tuple[Terms, int]]:
        """What must be below 0 for every predicate in the tile to hold, as far as that is open."""
        largest: dict[frozenset[tuple[object, int]], tuple[Terms, int]] = {}
        for p in {p: None for _, b in walk(s.body) for p in b.predicates}:
            terms = whole_tile(s, p)
            if terms is None:
                continue
            index = self._indices.at(Poly(terms))
            if not index.terms:
                # Of unrolled loops alone: decided for each of their instances, in every tile alike.
                continue
            key = frozenset(index.terms.items())
            known = largest.get(key)
            if known is None or known[1] < index.constant:
                largest[key] = index.terms, index.constant
        needed = []
        for terms, constant in largest.values():
            unit = gcd(*terms.values())
            if not self._conditions.implied(terms, constant):
                needed.append((terms, constant // unit * unit))
        return needed
