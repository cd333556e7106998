"""Parallel loops as functions of their own, which the thread pool calls for pieces of the iterations.

What the body uses - pointers, sizes, the variables of the loops around - goes through an array on the
launching thread's stack. A buffer that only one parallel loop uses is one iteration's at a time, so that each
thread has its own: on its stack where it is small, else its part of a workspace.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ...arith import Poly, Var, floor_div, poly
from ...ir import Buffer, For, LoopKind, PrimFunc, Stmt, loads, walk
from ...runtime.dims import Dim
from ...runtime.pool import PARALLEL
from ..dims import bytes_of, dim_of
from .builder import Builder
from .dtypes import memory_type
from .indices import Indices
from .point import Point
from .pool import DECLARATION

ALIGNMENT = 64
#: Local buffers of more bytes than this together are workspaces: threads' stacks are small.
MAX_STACK = 16 << 10


@dataclass(slots=True, eq=False)
class ParallelLoop:
    """A loop whose iterations the threads share out. shared: the buffers it uses that lie outside. sliced:
    those of which each thread has a part of a workspace. stacked: those on each thread's stack, as text."""

    shared: list[Buffer] = field(default_factory=list)
    sliced: list[Buffer] = field(default_factory=list)
    stacked: list[str] = field(default_factory=list)
    private: frozenset[Buffer] = frozenset()


def parallel_loops(func: PrimFunc) -> dict[Var, ParallelLoop]:
    """The outermost parallel loops. Not one whose iterations would share the launching thread's registers, or
    that stands inside of a vector loop: such a loop runs in place."""
    users: dict[Buffer, set[Var | None]] = {}
    for path, b in func.blocks():
        root = next((f.var for f in path if f.kind is LoopKind.PARALLEL), None)
        for x in (b.buffer, *(y.buffer for y in loads(b.value))):
            users.setdefault(x, set()).add(root)
    # What was packed before the call is there once, for all threads.
    allocated = frozenset(x for x in func.allocs if not x.constant)
    found: dict[Var, ParallelLoop] = {}
    for s in _outermost(func.body):
        used = dict.fromkeys(
            x for _, b in walk(s.body) for x in (b.buffer, *(y.buffer for y in loads(b.value)))
        )
        private = frozenset(x for x in used if x in allocated and users[x] == {s.var})
        if any(x.scope == "register" and x not in private for x in used):
            continue
        shared = [x for x in used if x not in private]
        found[s.var] = ParallelLoop(shared, private=private)
    return found


def _outermost(body: tuple[Stmt, ...]) -> Iterator[For]:
    for s in body:
        if type(s) is not For or s.kind is LoopKind.VECTORIZED:
            continue
        if s.kind is LoopKind.PARALLEL:
            yield s
        else:
            yield from _outermost(s.body)


def slice_bytes(x: Buffer) -> Poly:
    """The distance between two threads' parts of a workspace."""
    size = poly(x.dtype.bytes)
    for extent in x.shape:
        size = size * extent
    return floor_div(size + (ALIGNMENT - 1), ALIGNMENT) * ALIGNMENT


def workspace_bytes(x: Buffer, parts: int) -> Dim:
    """The bytes of a workspace that as many threads have their parts of."""
    return dim_of(slice_bytes(x) * parts) if parts > 1 else bytes_of(x)


def stack_slot(name: str, x: Buffer, size: int) -> str:
    """The line that makes a buffer on the stack."""
    return f"  {name} = alloca [{size // x.dtype.bytes} x {memory_type(x.dtype)}], align {ALIGNMENT}"


class Parallel:
    """Makes the functions of parallel loops, and their launches. `stack` and `functions` are lines of the
    launching function's entry and the text of the others."""

    def __init__(
        self, builder: Builder, point: Point, indices: Indices, pointers: dict[Buffer, str],
        loops: dict[Var, ParallelLoop], threads: int,
    ) -> None:  # fmt: skip
        self._b = builder
        self._point = point
        self._indices = indices
        self._pointers = pointers
        self._loops = loops
        self._threads = threads
        self.stack: list[str] = []
        self.functions: list[str] = []

    def runs(self, s: For) -> bool:
        """Whether the loop is one to launch."""
        return s.var in self._loops

    @contextmanager
    def body(self, s: For, trip: str | int) -> Iterator[tuple[str, str]]:
        """What is emitted meanwhile is the loop's function, over the iterations from the first of the two
        values up to the second; then comes the launch."""
        b, loop, number = self._b, self._loops[s.var], self._b.number()
        names = list(self._point.names.values())
        strides = [str(self._indices.scalar(slice_bytes(x))) for x in loop.sliced]
        begin, end = "%begin", "%end"
        with b.function(names) as scope:
            yield begin, end
        pointers = [self._pointers[x] for x in (*loop.shared, *loop.sliced)]
        arguments = [*(f"ptr noalias {p}" for p in pointers), *(f"i64 {n}" for n in names)]
        head = ", ".join([*arguments, f"i64 {begin}", f"i64 {end}"])
        lines = [
            f"define internal void @tw.loop{number}({head}) nounwind {{",
            "entry:",
            *loop.stacked,
            *scope.lines,
            "  ret void",
            "}",
            *self._piece(number, loop, names),
        ]
        self.functions.append("\n".join(lines))
        self._launch(number, pointers, [*names, *strides], trip)

    def _piece(self, number: int, loop: ParallelLoop, names: list[str]) -> list[str]:
        """The function that the pool calls: it takes the arguments out of the array."""
        lines: list[str] = []
        slots = iter(range(len(loop.shared) + len(loop.sliced) + len(names) + len(loop.sliced)))

        def slot(kind: str) -> str:
            n = next(slots)
            lines.append(f"  %p{n} = getelementptr i64, ptr %context, i64 {n}")
            lines.append(f"  %v{n} = load {kind}, ptr %p{n}, align 8")
            return f"%v{n}"

        shared = [slot("ptr") for _ in loop.shared]
        sliced = [slot("ptr") for _ in loop.sliced]
        values = [slot("i64") for _ in names]
        for n, base in enumerate(sliced):
            stride = slot("i64")
            lines.append(f"  %o{n} = mul i64 {stride}, %thread")
            lines.append(f"  %w{n} = getelementptr i8, ptr {base}, i64 %o{n}")
        given = [f"ptr {v}" for v in (*shared, *(f"%w{n}" for n in range(len(sliced))))]
        given += [f"i64 {v}" for v in (*values, "%begin", "%end")]
        head = "i64 %begin, i64 %end, i64 %thread, ptr %context"
        return [
            f"define internal void @tw.piece{number}({head}) nounwind {{",
            *lines,
            f"  call void @tw.loop{number}({', '.join(given)})",
            "  ret void",
            "}",
        ]

    def _launch(self, number: int, pointers: list[str], integers: list[str], trip: str | int) -> None:
        b = self._b
        context = f"%context{number}"
        self.stack.append(f"  {context} = alloca [{len(pointers) + len(integers)} x i64], align 64")
        values = [*(f"ptr {p}" for p in pointers), *(f"i64 {i}" for i in integers)]
        for n, value in enumerate(values):
            place = b.pure(f"getelementptr i64, ptr {context}, i64 {n}") if n else context
            b.statement(f"store {value}, ptr {place}, align 8")
        b.declarations.add(DECLARATION)
        b.statement(
            f"call void @{PARALLEL}(ptr @tw.piece{number}, ptr {context}, i64 {trip}, i64 {self._threads})"
        )
