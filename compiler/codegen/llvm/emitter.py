"""A lowered program as LLVM text.

Serial loops are emitted with value numbering for each loop depth: every pure integer expression lands in
the outermost loop it may live in. Unrolled loops become straight-line code, a vector loop the lanes of
vectors, register buffers values. Nothing here knows of matrix products or convolutions, and no LLVM pass is
needed afterwards.
"""

from __future__ import annotations

import re

from ...arith import Poly
from ...ir import Block, Buffer, Load, PrimFunc, only_moves
from ...passes.compact import FREE
from ...passes.predicates import split_predicates
from ...target import Target
from ..dims import bytes_of, params_of, workspace_of
from ..errors import BuildError, LoweringError
from ..lowered import Lowered
from .abilities import has_half
from .builder import MAX_INSTRUCTIONS, Builder
from .conditions import Condition, Conditions, Value
from .dtypes import memory_type, value_type
from .indices import Indices
from .loops import Loops
from .memory import Memory
from .nest import tile_roots
from .point import Point
from .values import Values

#: Local buffers of more bytes than this together are workspaces: threads' stacks are small.
MAX_STACK = 16 << 10
ALIGNMENT = 64
#: Instances looked at for each instruction allowed: those past a predicate give none, and cost time all
#: the same.
_VISITS = 8


def emit(
    func: PrimFunc, target: Target, *, max_instructions: int = MAX_INSTRUCTIONS, versioned: bool = True
) -> Lowered:
    """The program that the passes gave, as text. `versioned`: whole tiles get a version without predicates.

    Raises BuildError for what has no code, and for more than `max_instructions` instructions.
    """
    return _Emitter(func, target, max_instructions, versioned).run()


class _Emitter:
    def __init__(self, func: PrimFunc, target: Target, max_instructions: int, versioned: bool) -> None:
        self._func = func
        self._builder = b = Builder(max_instructions)
        self._visits = 0
        self._stack: list[str] = []
        self._workspaces: list[Buffer] = []
        self._pointers: dict[Buffer, str] = {}
        self._place_buffers()
        point = Point()
        self._point = point
        self._sizes = [_plain(f"%s{n}_", s.name) for n, s in enumerate(func.sizes)]
        point.names.update(zip(func.sizes, self._sizes, strict=True))
        indices = Indices(b, point)
        self._conditions = Conditions(b, point, indices)
        self._memory = Memory(
            b, point, indices, self._conditions, self._pointers, frozenset(func.params), has_half(target)
        )
        self._values = Values(b, point, indices, self._conditions, self._memory, target)
        roots = tile_roots(func) if versioned else set()
        registers = self._memory.registers
        self._loops = Loops(b, point, indices, self._conditions, registers, self._block, roots)
        self._steps = {b: split_predicates(b) for _, b in func.blocks()}
        self._own = {b: Load(b.buffer, b.indices) for b in self._steps}

    def run(self) -> Lowered:
        func, b = self._func, self._builder
        self._loops.body(func.body)
        pointers = [f"ptr noalias {self._pointers[x]}" for x in (*func.params, *self._workspaces)]
        pointers[len(func.params) : len(func.params)] = [f"i64 {s}" for s in self._sizes]
        arguments = ", ".join(pointers)
        lines = [
            *sorted(b.declarations | self._values.declarations),
            f"define void @{symbol(func.name)}({arguments}) nounwind {{",
            "entry:",
            *self._stack,
            *b.scopes[0].lines,
            "  ret void",
            "}",
        ]
        params, workspaces = params_of(func), tuple(map(workspace_of, self._workspaces))
        sizes = tuple(s.name for s in func.sizes)
        # Functions of the module's own are each kernel's, so that texts of several kernels can be joined.
        text = "\n".join(lines).replace("@tw.", f"@tw.{symbol(func.name)}.") + "\n"
        return Lowered(symbol(func.name), text, params, workspaces, sizes)

    def _place_buffers(self) -> None:
        """Parameters and workspaces are arguments; small local buffers stand on the stack."""
        room = MAX_STACK
        for n, x in enumerate((*self._func.params, *self._func.allocs)):
            element = memory_type(x.dtype)
            name = _plain(f"%b{n}_", x.name)
            self._pointers[x] = name
            if n < len(self._func.params) or x.scope == "register":
                continue
            size = bytes_of(x)
            if x.scope == "local" and isinstance(size, int) and size <= room:
                room -= -(-size // ALIGNMENT) * ALIGNMENT
                count = size // x.dtype.bytes
                self._stack.append(f"  {name} = alloca [{count} x {element}], align {ALIGNMENT}")
            else:
                self._workspaces.append(x)

    # ---- blocks ----
    def _block(self, b: Block) -> None:
        """One instance, or one for each lane."""
        self._visits += 1
        if self._visits > _VISITS * self._builder.limit:
            raise BuildError(
                f"the kernel unrolls more than {_VISITS * self._builder.limit} instances of blocks"
            )
        try:
            self._assign(b)
        except BuildError as e:
            if isinstance(e, LoweringError):
                raise
            raise LoweringError("emit", e.message, self._func, b) from None

    def _assign(self, b: Block) -> None:
        if b.init is not None:
            raise BuildError(f"the init of {b.name!r} was not decomposed")
        exist, steps = self._steps[b]
        if exist and self._conditions.refuted(exist):
            return
        runs = self._conditions.all_of(steps) if steps else True
        if runs is False:
            return
        self._memory.existing = exist
        dtype = b.buffer.dtype
        if dtype.is_narrow and runs is True and b.buffer.scope != "register" and only_moves(b.value):
            bits = self._values.moved(b.value)
            self._memory.store_bits(b, bits, self._exists(b, exist))
            return
        value = self._values.value(b.value)
        if runs is not True:
            # A step of a reduction outside of its range must change nothing.
            assert not isinstance(runs, bool)
            value = self._values.select(runs, dtype, value, self._values.value(self._own[b]))
        where = self._exists(b, exist)
        if b.buffer.scope == "register":
            self._to_register(b, value, where)
        else:
            self._memory.store(b, value, dtype, where)

    def _exists(self, b: Block, exist: tuple[Poly, ...]) -> Condition:
        return self._conditions.all_of(exist) if exist and (FREE, 1) not in b.annotations else True

    def _to_register(self, b: Block, value: Value, where: Condition) -> None:
        lanes, dtype = self._point.lanes, b.buffer.dtype
        element, stride = self._memory.place(b, b.buffer, b.indices)
        if lanes is not None and not stride:
            raise BuildError(f"block {b.name!r} would store all lanes to one element of {b.buffer.name}")
        registers = self._memory.registers
        if where is not True and registers.holds(b.buffer, element, stride, lanes):
            assert not isinstance(where, bool)
            value = self._values.select(where, dtype, value, self._values.value(self._own[b]))
        text = self._memory.wide(value, value_type(dtype))
        registers.write(b.buffer, element, stride, lanes, text)


def symbol(name: str) -> str:
    """The function's name in the object: an identifier that is none of the C library's memory functions."""
    word = re.sub(r"[^A-Za-z0-9_]", "_", name) or "kernel"
    return word + "_" if word[0].isdigit() or word in ("memcpy", "memmove", "memset") else word


def _plain(prefix: str, name: str) -> str:
    return prefix + re.sub(r"[^A-Za-z0-9_]", "_", name)
