"""Statements: loops and blocks."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from ..arith import Atom, Poly, Var, substitute
from .expr import Buffer, Expr
from .span import Span


class LoopKind(StrEnum):
    """How the iterations of a loop run. THREAD: each on a thread of the axis that the loop's annotation
    `axis` names; a processor without such threads runs them one after the other."""

    SERIAL = "serial"
    PARALLEL = "parallel"
    VECTORIZED = "vectorized"
    UNROLLED = "unrolled"
    THREAD = "thread"


class IterKind(StrEnum):
    SPATIAL = "spatial"
    REDUCE = "reduce"


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """One assignment over iteration variables: `buffer[indices] = value` for every instance whose
    `predicates` are all negative.

    iters, kinds: the iteration variables and whether each is spatial or reduce.
    binds: per iteration variable, its value over the loop variables around the block.
    predicates: polynomials over loop variables; an instance exists where each is below 0.
    indices, value: over the iteration variables. A reduction's value reads `buffer[indices]`.
    init: for a reduction, the value before its first step, until decompose_reduction makes it a block of its
    own.
    """

    name: str
    iters: tuple[Var, ...]
    kinds: tuple[IterKind, ...]
    binds: tuple[Poly, ...]
    buffer: Buffer
    indices: tuple[Poly, ...]
    value: Expr
    init: Expr | None = None
    predicates: tuple[Poly, ...] = ()
    annotations: tuple[tuple[str, str | int], ...] = ()
    span: Span | None = None

    @property
    def binding(self) -> dict[Atom, Poly]:
        """Iteration variable -> its value over loop variables."""
        return dict(zip(self.iters, self.binds, strict=True))

    def bound_indices(self) -> tuple[Poly, ...]:
        """The written indices over loop variables."""
        m = self.binding
        return tuple(substitute(i, m) for i in self.indices)

    @property
    def is_reduction(self) -> bool:
        return IterKind.REDUCE in self.kinds

    def loop_vars(self, kind: IterKind) -> set[Var]:
        """The loop variables that the bindings of this kind of iteration variable use."""
        return {v for k, b in zip(self.kinds, self.binds, strict=True) if k is kind for v in b.vars()}


@dataclass(frozen=True, slots=True, eq=False)
class For:
    """for var in range(var.extent): body"""

    var: Var
    body: tuple[Stmt, ...]
    kind: LoopKind = LoopKind.SERIAL
    annotations: tuple[tuple[str, str | int], ...] = field(default=())


Stmt = For | Block


def nest(loops: list[Var], block: Block, **fields: Any) -> tuple[Stmt, ...]:
    """Serial loops around one block, the first outermost."""
    body: tuple[Stmt, ...] = (block,)
    for v in reversed(loops):
        body = (For(v, body, **fields),)
    return body
