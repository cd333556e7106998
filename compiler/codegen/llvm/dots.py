"""Dot products: the steps of an unrolled loop around lanes in one instruction of the processor.

What is looked for is one instruction's worth of a reduction,
`for s in unroll(4): for n in vector(16): C[n] += int32(A[s]) * int32(B[n, s])`, whose steps lie next to each
other in memory. Integers give the same bits as one step after the other: what an instruction of x86 or Arm
adds up wraps around like int32 (the saturating forms are not used). For bfloat16 the order and the rounding
of the sum differ, and x86 takes operands and results below 2**-126 in magnitude for 0; so those need a target
with math=reassoc.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ...arith import Poly, Var
from ...ir import Binary, Block, Cast, Const, DType, Expr, For, InBounds, IterKind, Load, Select, loads
from ...target import Target
from .builder import Builder
from .conditions import Value
from .dtypes import value_type, vector_type
from .memory import Memory
from .point import Point
from .steps import StepNest
from .words import Words

_I8, _U8, _I16, _I32 = DType("int", 8), DType("uint", 8), DType("int", 16), DType("int", 32)
#: Four bytes of which each has only its sign bit set.
_SIGNS = 0x80808080 - 2**32
_BF16, _F32 = DType("bfloat", 16), DType("float", 32)


@dataclass(frozen=True, slots=True)
class Instruction:
    """One dot product instruction. left, right: what its operands hold. forms: lanes -> LLVM's function.
    element: the operands' element type in LLVM. adds: whether it adds to an operand; otherwise it gives the
    sum of the products alone."""

    left: DType
    right: DType
    forms: tuple[tuple[int, str], ...]
    element: str
    adds: bool = True

    @property
    def steps(self) -> int:
        """Products that one lane adds up; a lane has 32 bits."""
        return 4 // self.left.bytes


@dataclass(frozen=True, slots=True, eq=False)
class Dot:
    """How a block's product is computed. x, y: the operands in the instruction's order. flipped: which of
    them has its sign bit turned over, which moves it by 128; what that adds is taken off again. guards:
    conditions outside of which nothing is added."""

    instruction: Instruction
    x: Expr
    y: Expr
    flipped: int | None
    guards: tuple[Poly, ...]


@lru_cache(maxsize=64)
def instructions_of(target: Target) -> tuple[Instruction, ...]:
    """The dot product instructions of a target; none where another compiler makes the code."""
    if target.kind != "llvm":
        return ()
    f = set(target.features)
    if target.architecture == "aarch64":
        found = [
            ("dotprod", _I8, _I8, "sdot.v4i32.v16i8", "i8"),
            ("dotprod", _U8, _U8, "udot.v4i32.v16i8", "i8"),
            ("i8mm", _U8, _I8, "usdot.v4i32.v16i8", "i8"),
        ]
        if target.math == "reassoc":
            found.append(("bf16", _BF16, _BF16, "bfdot.v4f32.v8bf16", "bfloat"))
        return tuple(
            Instruction(a, b, ((4, f"llvm.aarch64.neon.{name}"),), element)
            for feature, a, b, name, element in found
            if feature in f
        )
    if target.architecture != "x86_64":
        return ()
    made: list[Instruction] = []
    widths: tuple[tuple[int, str], ...] = ((16, "512"),) if "avx512vnni" in f else ()
    if "avxvnni" in f or {"avx512vnni", "avx512vl"} <= f:
        widths = (*widths, (8, "256"), (4, "128"))
    for a, b, name, element in ((_U8, _I8, "vpdpbusd", "i8"), (_I16, _I16, "vpdpwssd", "i16")):
        forms = tuple((n, f"llvm.x86.avx512.{name}.{bits}") for n, bits in widths)
        made += [Instruction(a, b, forms, element)] if forms else []
    if not widths:
        # Of two products, exact but for two squares of the lowest int16, whose sum wraps around as in int32.
        words = ("avx512.pmaddw.d.512", "avx2.pmadd.wd", "sse2.pmadd.wd")
        known = zip(("avx512bw", "avx2", "sse2"), (16, 8, 4), words, strict=True)
        forms = tuple((n, f"llvm.x86.{name}") for feature, n, name in known if feature in f)
        made.append(Instruction(_I16, _I16, forms, "i16", adds=False))
    if "avxvnniint8" in f:
        for a, b, name in ((_I8, _I8, "vpdpbssd"), (_U8, _U8, "vpdpbuud")):
            forms = tuple((n, f"llvm.x86.avx2.{name}.{bits}") for n, bits in ((8, "256"), (4, "128")))
            made.append(Instruction(a, b, forms, "i8"))
    if "avx512bf16" in f and target.math == "reassoc":
        widths = ((16, "512"), (8, "256"), (4, "128")) if "avx512vl" in f else ((16, "512"),)
        forms = tuple((n, f"llvm.x86.avx512bf16.dpbf16ps.{bits}") for n, bits in widths)
        made.append(Instruction(_BF16, _BF16, forms, "bfloat"))
    return tuple(made)


def instruction_for(target: Target, a: DType, b: DType) -> tuple[Instruction, bool, int | None] | None:
    """(instruction, whether a and b change places, which of its operands is to have the sign bit turned over,
    if one)."""
    known = {(i.left, i.right): i for i in instructions_of(target)}
    other = {_I8: _U8, _U8: _I8}
    orders = ((a, b, False), (b, a, True))
    for x, y, swapped in orders:
        if (x, y) in known:
            return known[x, y], swapped, None
    for x, y, swapped in orders:
        for n, pair in enumerate(((other.get(x), y), (x, other.get(y)))):
            if None not in pair and pair in known:
                return known[pair], swapped, n
    return None


def guards_of(b: Block) -> tuple[Poly, ...]:
    """The conditions outside of which a block adds 0 to what it writes."""
    v = b.value
    for term in (v.a, v.b) if type(v) is Binary else ():
        if type(term) is Select and type(term.cond) is InBounds:
            return term.cond.conditions
    return ()


def product_of(b: Block) -> tuple[Expr, Expr] | None:
    """The two factors whose widened product a block adds to what it writes, under conditions or always; None
    for another block."""
    v = b.value
    if type(v) is not Binary or v.op != "add" or b.init is not None:
        return None
    for own, term in ((v.a, v.b), (v.b, v.a)):
        if type(own) is not Load or own.buffer is not b.buffer or own.indices != b.indices:
            continue
        if type(term) is Select and type(term.cond) is InBounds:
            if type(term.b) is not Const or term.b.value != 0:
                return None
            term = term.a
        if type(term) is Binary and term.op == "mul" and type(term.a) is Cast and type(term.b) is Cast:
            x, y = term.a.a, term.b.a
            return None if any(z.buffer is b.buffer for e in (x, y) for z in loads(e)) else (x, y)
    return None


def is_word(e: Expr) -> bool:
    """Whether the elements of several steps can be computed at once, as one integer: reads and constants,
    joined bit by bit."""
    if type(e) is Cast:
        return e.dtype.is_int and e.a.dtype.is_int and e.dtype.bits == e.a.dtype.bits and is_word(e.a)
    if type(e) is Binary:
        return e.op in ("and", "or", "xor") and e.dtype.is_int and is_word(e.a) and is_word(e.b)
    return type(e) is Load or (type(e) is Const and e.dtype.is_int)


def _signed(word: int) -> int:
    return word - (1 << 32) if word >> 31 else word


class Dots:
    """Finds the blocks whose products are added up by an instruction, and emits it."""

    def __init__(self, builder: Builder, point: Point, memory: Memory, words: Words, target: Target) -> None:
        self._b = builder
        self._point = point
        self._memory = memory
        self._words = words
        self._target = target
        self._found: dict[For, Dot | None] = {}

    def of(self, nest: StepNest) -> Dot | None:
        """The instruction for a block whose steps an unrolled loop takes, where the target has one."""
        if nest.steps not in self._found:
            self._found[nest.steps] = self._look(nest)
        return self._found[nest.steps]

    def _look(self, nest: StepNest) -> Dot | None:
        if not instructions_of(self._target):
            return None
        steps, b = nest.steps, nest.block
        pair = product_of(b)
        guards = guards_of(b)
        if pair is None or any(steps.var in p.vars() for p in (*b.indices, *b.predicates, *guards)):
            return None
        # All instances read what they add to before the first one writes: each needs an element of its own.
        carried, moving = b.loop_vars(IterKind.REDUCE), {v for i in b.indices for v in i.vars()}
        if not all(f.var in moving - carried for f in nest.around):
            return None
        found = instruction_for(self._target, pair[0].dtype, pair[1].dtype)
        wide = _F32 if pair[0].dtype.is_float else _I32
        if not all(map(is_word, pair)) or not any(loads(e) for e in pair):
            return None
        if found is None or b.buffer.dtype != wide or steps.var.extent.const != found[0].steps:
            return None
        instruction, swapped, flipped = found
        x, y = pair[::-1] if swapped else pair
        return Dot(instruction, x, y, flipped, guards)

    def value(self, own: Load, dot: Dot, steps: For) -> str | None:
        """What the block writes, a vector: what it held and the products of all steps. None where the steps
        of an operand do not lie next to each other, or lanes are no multiple of the instruction's."""
        lanes, count = self._point.lanes, dot.instruction.steps
        forms = [(n, f) for n, f in dot.instruction.forms if lanes is not None and lanes % n == 0]
        if lanes is None or not forms:
            return None
        around = self._memory.reading
        self._memory.reading = (*around, *dot.guards)
        x, y = self._word(dot.x, steps.var, count), self._word(dot.y, steps.var, count)
        self._memory.reading = around
        if x is None or y is None:
            return None
        if dot.guards and not (x[1] and y[1]):
            # One word for all lanes is not 0 where a lane is to add nothing.
            return None
        held = self._memory.wide(self._memory.load(own), value_type(own.dtype))
        if dot.flipped is not None and dot.x.dtype == dot.y.dtype and (x, y)[dot.flipped][1]:
            # Either may be flipped: the one that lanes share, so that rows share what it adds.
            x, y = y, x
        operands = [self._memory.wide(v, "i32") for v in (x, y)]
        if dot.flipped is None:
            return self._added(held, operands, dot.instruction, forms[0], lanes)
        kind, sign = vector_type("i32", lanes), f"splat (i32 {_SIGNS})"
        constant = list(operands)
        operands[dot.flipped] = self._b.shared(f"xor {kind} {operands[dot.flipped]}, {sign}")
        constant[dot.flipped] = sign
        out = self._added(held, operands, dot.instruction, forms[0], lanes)
        # Turning the sign bit over moved each number by the one whose bits are 0x80.
        moved = self._added("zeroinitializer", constant, dot.instruction, forms[0], lanes)
        return self._b.shared(f"sub {kind} {out}, {moved}")

    def _word(self, e: Expr, steps: Var, count: int) -> Value | None:
        """The elements of all steps as one integer; one for each lane where they move with lanes."""
        if type(e) is Load:
            return self._words.load(e, steps, count)
        if type(e) is Const:
            bits = 8 * e.dtype.bytes
            one = int(e.value) % (1 << bits)
            return str(_signed(sum(one << (bits * n) for n in range(count)))), False
        if type(e) is Cast:
            return self._word(e.a, steps, count)
        assert type(e) is Binary
        a, b = self._word(e.a, steps, count), self._word(e.b, steps, count)
        if a is None or b is None:
            return None
        # In every lane: x86 has an operation that takes its operand in memory for all lanes.
        x, y = (self._memory.wide(v, "i32") for v in (a, b))
        return self._b.shared(f"{e.op} {vector_type('i32', self._point.lanes)} {x}, {y}"), True

    def _added(
        self, held: str, operands: list[str], instruction: Instruction, form: tuple[int, str], lanes: int
    ) -> str:
        """held and the products of the operands, in pieces as wide as the instruction."""
        width, function = form
        of, ints = vector_type("float" if instruction.left.is_float else "i32", width), f"<{width} x i32>"
        operand = vector_type(instruction.element, width * instruction.steps)
        self._b.declare(of, f"@{function}", *([of] if instruction.adds else []), operand, operand)
        whole = vector_type(of[1:-1].split()[-1], lanes)
        parts: list[str] = []
        for first in range(0, lanes, width):
            c, given = held, operands
            if width != lanes:
                mask = f"<{width} x i32> <" + ", ".join(f"i32 {first + n}" for n in range(width)) + ">"
                c = self._b.shared(f"shufflevector {whole} {held}, {whole} poison, {mask}")
                given = [
                    self._b.shared(f"shufflevector <{lanes} x i32> {v}, <{lanes} x i32> poison, {mask}")
                    for v in operands
                ]
            x, y = (self._b.shared(f"bitcast {ints} {v} to {operand}") for v in given)
            words = f"{operand} {x}, {operand} {y}"
            if instruction.adds:
                parts.append(self._b.shared(f"call {of} @{function}({of} {c}, {words})"))
            else:
                sum_ = self._b.shared(f"call {of} @{function}({words})")
                parts.append(self._b.shared(f"add {of} {c}, {sum_}"))
        return self._joined(parts, of)

    def _joined(self, parts: list[str], kind: str) -> str:
        """Vectors behind each other as one; as many as a power of two."""
        element = kind[1:-1].split()[-1]
        width = int(kind[1:].split()[0])
        while len(parts) > 1:
            mask = f"<{2 * width} x i32> <" + ", ".join(f"i32 {n}" for n in range(2 * width)) + ">"
            kind = vector_type(element, width)
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [self._b.shared(f"shufflevector {kind} {a}, {kind} {b}, {mask}") for a, b in pairs]
            width *= 2
        return parts[0]
