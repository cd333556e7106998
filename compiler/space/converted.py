"""The rule for sums of products of converted elements that no instruction takes: conversions leave the loops.

The operands are converted first, in lanes, and other rules make what they make of the wider operands. An
operand that they pack is converted where it is packed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from ..codegen.llvm.dots import instruction_for
from ..ir import Binary, Block, Cast, DType, Expr, Load, PrimFunc, buffers_read, loads
from ..ir.annotations import is_ahead
from ..schedule import Schedule
from ..schedule.find import readers
from ..target import Target
from .dot_products import DotProduct
from .groups import Group
from .sketch import Constraint

_INT16, _INT32, _FLOAT32 = DType("int", 16), DType("int", 32), DType("float", 32)


class Structure(Protocol):
    """See rules.Structure."""

    @property
    def name(self) -> str: ...

    @property
    def fallback(self) -> bool: ...

    def apply(self, sch: Schedule, group: Group, target: Target, tag: str) -> list[Constraint]: ...


Rule = Callable[[PrimFunc, Group, Target], Iterator[Structure]]


@dataclass(frozen=True, slots=True)
class Converted:
    """The number-th structure of the rule for the program with wider operands."""

    rule: Rule
    number: int
    dtype: DType
    name: str
    fallback: bool

    def apply(self, sch: Schedule, group: Group, target: Target, tag: str) -> list[Constraint]:
        """Converts, applies the structure, and converts what it packed where it is packed; constants before
        the calls."""
        inner, made = convert(sch, group, self.dtype)
        found = list(self.rule(sch.func, inner, target))
        constraints = found[self.number].apply(sch, inner, target, tag)
        for name in made:
            block = sch.func.block(name)[1]
            users = readers(sch.func, block.buffer)
            at = sch.get_block(name)
            if all(x.buffer.constant for x in loads(block.value)):
                sch.compute_ahead(at)
            elif len(users) == 1 and not users[0].is_reduction:
                sch.compute_inline(at)
            elif not is_ahead(block):
                _in_lanes(sch, name, target)
        return constraints


def converted(func: PrimFunc, group: Group, target: Target, rule: Rule) -> Iterator[Converted]:
    """Every structure of the rule for the program with wider operands."""
    dtype = _wider(func.block(group.main)[1], target)
    if dtype is None:
        return
    trial = Schedule(func)
    inner, _ = convert(trial, group, dtype)
    found = list(rule(trial.func, inner, target))
    for n, s in enumerate(found):
        # Integers are only converted for an instruction.
        if not s.fallback and (dtype.is_float or isinstance(s, DotProduct)):
            yield Converted(rule, n, dtype, f"{s.name}, in {dtype}", s.fallback)


def _wider(main: Block, target: Target) -> DType | None:
    """What both operands of a sum of products are to be converted to."""
    v = main.value
    if not main.is_reduction or type(v) is not Binary or v.op != "add":
        return None
    if type(v.b) is not Binary or v.b.op != "mul":
        return None
    x, y = _narrow(v.b.a), _narrow(v.b.b)
    if x is None or y is None or x.buffer is y.buffer:
        return None
    if main.buffer.dtype == _FLOAT32 and x.dtype.is_narrow and y.dtype.is_narrow:
        return _FLOAT32
    small = x.dtype.is_int and y.dtype.is_int and x.dtype.bits == y.dtype.bits == 8
    if main.buffer.dtype == _INT32 and small and instruction_for(target, _INT16, _INT16):
        return _INT16
    return None


def _narrow(e: Expr) -> Load | None:
    return e.a if type(e) is Cast and type(e.a) is Load else None


def convert(sch: Schedule, group: Group, dtype: DType) -> tuple[Group, tuple[str, ...]]:
    """Converts both operands of the group's main block; what made them is inlined there. The group that is
    left, and the converting blocks."""
    main = sch.get_block(group.main)
    made: list[str] = []
    left = list(group.producers)
    for slot in range(2):
        source = buffers_read(sch.func.block(group.main)[1])[slot]
        block = sch.convert_read(main, slot, str(dtype))
        made.append(block.name)
        if source.constant:
            # The rules see that it is there before the calls.
            sch.compute_ahead(block)
        for name in left:
            if sch.func.block(name)[1].buffer is source:
                sch.compute_inline(sch.get_block(name))
                left.remove(name)
                break
    return replace(group, producers=()), tuple(made)


def _in_lanes(sch: Schedule, name: str, target: Target) -> None:
    loop = sch.get_loops(sch.get_block(name))[-1]
    bytes_ = sch.func.block(name)[1].buffer.dtype.bytes
    width = min(target.vector_bytes // bytes_, 1 << ((loop.var.extent.const or 1).bit_length() - 1))
    if width > 1:
        _, loop = sch.split(loop, [None, width])
        sch.vectorize(loop)
