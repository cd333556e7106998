"""A lowered program as LLVM text.

Serial loops are emitted with value numbering for each loop depth: every pure integer expression lands in
the outermost loop it may live in. Unrolled loops become straight-line code, a vector loop the lanes of
vectors, register buffers values. Nothing here knows of matrix products or convolutions, and no LLVM pass is
needed afterwards.
"""

from __future__ import annotations

import re
from itertools import product

from ...arith import Poly, Var
from ...ir import Binary, Block, Buffer, For, IterKind, Load, LoopKind, PrimFunc, only_moves
from ...ir.rules import identity
from ...passes.compact import FREE
from ...passes.predicates import split_predicates
from ...target import Target
from ..dims import bytes_of, params_of, workspace_of
from ..errors import BuildError, LoweringError
from ..lowered import Lowered
from .abilities import has_half
from .addresses import Addresses
from .builder import MAX_INSTRUCTIONS, Builder
from .conditions import Condition, Conditions, Value
from .dots import Dot, Dots
from .dtypes import memory_type, value_type
from .indices import Indices
from .loops import Loops
from .memory import Memory
from .nest import tile_roots
from .parallel import (
    ALIGNMENT,
    MAX_STACK,
    Parallel,
    parallel_loops,
    stack_slot,
    workspace_bytes,
)
from .point import Point
from .steps import StepNest, interleaved, step_nest
from .values import Values
from .words import Words

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
        #: With the number of threads that have a part of their own.
        self._workspaces: dict[Buffer, int] = {}
        self._pointers: dict[Buffer, str] = {}
        self._parallel_loops = parallel_loops(func) if target.num_threads > 1 else {}
        self._threads = target.num_threads
        self._place_buffers()
        point = Point()
        self._point = point
        self._sizes = [_plain(f"%s{n}_", s.name) for n, s in enumerate(func.sizes)]
        point.names.update(zip(func.sizes, self._sizes, strict=True))
        indices = Indices(b, point)
        self._conditions = Conditions(b, point, indices)
        addresses = Addresses(b, point, indices, self._pointers, frozenset(func.params))
        self._memory = Memory(b, point, indices, self._conditions, addresses, has_half(target))
        self._words = Words(b, point, indices, self._conditions, self._memory, addresses)
        self._values = Values(b, point, indices, self._conditions, self._memory, target)
        roots = tile_roots(func) if versioned else set()
        registers = self._memory.registers
        self._nests: dict[For, StepNest | None] = {}
        self._dots = Dots(b, point, self._memory, self._words, target)
        self._parallel = Parallel(b, point, indices, self._pointers, self._parallel_loops, target.num_threads)
        self._loops = Loops(
            b, point, indices, self._conditions, registers, self._block, self._together, roots, self._parallel
        )
        self._steps = {b: split_predicates(b) for _, b in func.blocks()}
        self._own = {b: Load(b.buffer, b.indices) for b in self._steps}
        #: Reductions whose steps are lanes.
        self._across = {
            b
            for path, b in func.blocks()
            if any(f.kind is LoopKind.VECTORIZED and f.var in b.loop_vars(IterKind.REDUCE) for f in path)
        }

    def run(self) -> Lowered:
        func, b = self._func, self._builder
        self._loops.body(func.body)
        pointers = [f"ptr noalias {self._pointers[x]}" for x in (*func.params, *self._workspaces)]
        pointers[len(func.params) : len(func.params)] = [f"i64 {s}" for s in self._sizes]
        arguments = ", ".join(pointers)
        lines = [
            *sorted(b.declarations | self._values.declarations),
            *self._parallel.functions,
            f"define void @{symbol(func.name)}({arguments}) nounwind {{",
            "entry:",
            *self._stack,
            *self._parallel.stack,
            *b.scopes[0].lines,
            "  ret void",
            "}",
        ]
        params = params_of(func)
        workspaces = tuple(workspace_of(x, workspace_bytes(x, n)) for x, n in self._workspaces.items())
        sizes = tuple(s.name for s in func.sizes)
        # Functions of the module's own are each kernel's, so that texts of several kernels can be joined.
        text = "\n".join(lines).replace("@tw.", f"@tw.{symbol(func.name)}.") + "\n"
        return Lowered(symbol(func.name), text, params, workspaces, sizes)

    def _place_buffers(self) -> None:
        """Parameters and workspaces are arguments; small local buffers stand on the stack: the function's, or
        that of each thread in the one parallel loop that uses them."""
        room, rooms = MAX_STACK, dict.fromkeys(self._parallel_loops, MAX_STACK)
        for n, x in enumerate((*self._func.params, *self._func.allocs)):
            name = _plain(f"%b{n}_", x.name)
            self._pointers[x] = name
            if n < len(self._func.params) or x.scope == "register":
                continue
            home = next((v for v, loop in self._parallel_loops.items() if x in loop.private), None)
            size = bytes_of(x)
            free = room if home is None else rooms[home]
            if x.scope == "local" and isinstance(size, int) and size <= free:
                taken = -(-size // ALIGNMENT) * ALIGNMENT
                if home is None:
                    room -= taken
                    self._stack.append(stack_slot(name, x, size))
                else:
                    rooms[home] -= taken
                    self._parallel_loops[home].stacked.append(stack_slot(name, x, size))
            elif home is None:
                self._workspaces[x] = 1
            else:
                self._workspaces[x] = self._threads
                self._parallel_loops[home].sliced.append(x)

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
        if b in self._across and self._point.lane is not None:
            self._combine_lanes(b, exist, runs)
            return
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
        self._write(b, value, self._exists(b, exist))

    def _write(self, b: Block, value: Value, where: Condition) -> None:
        if b.buffer.scope == "register":
            self._to_register(b, value, where)
        else:
            self._memory.store(b, value, b.buffer.dtype, where)

    # ---- steps taken together ----
    def _together(self, steps: For) -> bool:
        """All iterations of an unrolled loop around one block in lanes at once: products that an instruction
        adds up, or elements that are written next to each other."""
        if steps not in self._nests:
            self._nests[steps] = step_nest(steps)
        found = self._nests[steps]
        if found is None:
            return False
        point = self._point
        dot = self._dots.of(found)
        if dot is None and not found.moves:
            return False
        point.lane, point.lanes = found.lane.var, found.lane.var.extent.const
        done = self._instances(found, dot)
        point.lane = point.lanes = None
        for f in found.around:
            point.unrolled.pop(f.var, None)
        return done

    def _instances(self, nest: StepNest, dot: Dot | None) -> bool:
        """Every instance of the loops between the steps and the lanes, or none where one has no such code."""
        b = nest.block
        exist, runs = self._steps[b]
        unrolled, extents = self._point.unrolled, [f.var.extent.const or 0 for f in nest.around]
        made: list[tuple[dict[Var, int], str]] = []
        for values in product(*map(range, extents)):
            at = dict(zip((f.var for f in nest.around), values, strict=True))
            unrolled.update(at)
            if exist and self._conditions.refuted(exist):
                continue
            if runs and self._conditions.all_of(runs) is not True:
                return False
            self._memory.existing = exist
            value = self._joined(nest) if dot is None else self._dots.value(self._own[b], dot, nest.steps)
            if value is None:
                return False
            made.append((at, value))
        for at, value in made:
            unrolled.update(at)
            self._memory.existing = exist
            where = self._exists(b, exist)
            if dot is None:
                self._words.store(b, nest.steps.var, nest.count, value, where)
            else:
                self._write(b, (value, True), where)
        return True

    def _joined(self, nest: StepNest) -> str | None:
        """What the steps write, as one integer for each lane."""
        memory, steps, count, b = self._memory, nest.steps.var, nest.count, nest.block
        if not self._words.takes(b, steps, count):
            return None
        if type(b.value) is Load:
            word = self._words.load(b.value, steps, count)
            if word is not None:
                return memory.wide(word, f"i{8 * b.buffer.dtype.bytes * count}")
        parts: list[str] = []
        for n in range(count):
            self._point.unrolled[steps] = n
            value = self._values.moved(b.value) if only_moves(b.value) else self._values.value(b.value)
            if not only_moves(b.value):
                value = memory.to_memory(value, b.buffer.dtype)
            parts.append(memory.wide(value, memory_type(b.buffer.dtype)))
        del self._point.unrolled[steps]
        return interleaved(self._builder, parts, memory_type(b.buffer.dtype), self._point.lanes or 1)

    def _combine_lanes(self, b: Block, exist: tuple[Poly, ...], runs: Condition) -> None:
        """The lanes combined with each other, then with the element, which is one for all of them."""
        assert type(b.value) is Binary
        op, dtype, point = b.value.op, b.buffer.dtype, self._point
        term = self._values.value(b.value.b)
        if runs is not True:
            assert not isinstance(runs, bool)
            neutral = identity(op, dtype)
            term = self._values.select(runs, dtype, term, self._values.value(neutral))
        value = self._values.across(op, dtype, term)
        lane, lanes = point.lane, point.lanes
        point.lane = point.lanes = None
        out = self._values.combined(op, dtype, self._values.value(self._own[b]), (value, False))
        where = self._exists(b, exist)
        if b.buffer.scope == "register":
            self._to_register(b, out, where)
        else:
            self._memory.store(b, out, dtype, where)
        point.lane, point.lanes = lane, lanes

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
