"""PrimFunc: one tensor program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from ..arith import Size, poly
from .expr import Binary, Buffer, Unary
from .span import Span
from .stmt import Block, Stmt
from .visit import Path, rewrite, walk, walk_expr


@dataclass(frozen=True, slots=True, eq=False)
class PrimFunc:
    """A function over buffers. The parameters that a block writes are outputs, the others are inputs."""

    name: str
    params: tuple[Buffer, ...]
    allocs: tuple[Buffer, ...]
    body: tuple[Stmt, ...]
    span: Span | None = None

    @property
    def outputs(self) -> tuple[Buffer, ...]:
        """The parameters that some block writes, in parameter order."""
        written = {b.buffer for _, b in self.blocks()}
        return tuple(p for p in self.params if p in written)

    @property
    def inputs(self) -> tuple[Buffer, ...]:
        """The parameters that no block writes, in parameter order."""
        outputs = self.outputs
        return tuple(p for p in self.params if p not in outputs)

    @property
    def constants(self) -> tuple[Buffer, ...]:
        """The parameters whose contents are known before the calls, in parameter order."""
        return tuple(p for p in self.params if p.constant)

    @property
    def sizes(self) -> tuple[Size, ...]:
        """The sizes that a call tells, in the order in which they first stand by themselves as a dimension of
        a parameter."""
        found: list[Size] = []
        for b in self.params:
            for p in b.shape:
                a = p.atom
                if type(a) is Size and a not in found:
                    found.append(a)
        return tuple(found)

    def blocks(self) -> Iterator[tuple[Path, Block]]:
        """(enclosing loops, block), in program order."""
        return walk(self.body)

    def block(self, name: str) -> tuple[Path, Block]:
        """The block of that name with its loops. Raises KeyError."""
        for path, b in self.blocks():
            if b.name == name:
                return path, b
        raise KeyError(name)

    def rewrite(self, f: Callable[[Stmt], Stmt | tuple[Stmt, ...]]) -> PrimFunc:
        """A copy whose statements went through `f`, bottom-up."""
        return replace(self, body=rewrite(self.body, f))

    def fresh_block_name(self, wanted: str) -> str:
        """`wanted`, with a number behind it where that name is taken."""
        taken = {b.name for _, b in self.blocks()}
        return fresh(wanted, taken)

    def fresh_buffer_name(self, wanted: str) -> str:
        """`wanted`, with a number behind it where that name is taken."""
        return fresh(wanted, {b.name for b in self.params + self.allocs})

    def __str__(self) -> str:
        from .printer import script

        return script(self)


def fresh(wanted: str, taken: set[str]) -> str:
    """`wanted`, with a number behind it where that name is taken."""
    name, n = wanted, 1
    while name in taken:
        name, n = f"{wanted}_{n}", n + 1
    return name


def flop_count(func: PrimFunc) -> int:
    """Floating point (or integer) operations of one call: arithmetic nodes times instances; a comparison, a
    selection, a cast and a load count nothing, a function such as exp counts one. An undecomposed init counts
    nothing. ValueError while a size is open."""
    if func.sizes:
        raise ValueError(f"{func.name!r} has open sizes: {', '.join(map(repr, func.sizes))}; bind them first")
    total = 0
    for _, b in func.blocks():
        points = 1
        for it in b.iters:
            points *= poly(it.extent).const or 0
        per = sum(1 for e in walk_expr(b.value) if isinstance(e, Binary | Unary))
        total += points * per
    return total
