"""Expressions as values at a point of the loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ir import (
    Binary,
    Cast,
    Compare,
    Const,
    DType,
    Expr,
    InBounds,
    IndexValue,
    Load,
    Select,
    Unary,
)  # fmt: skip
from ...ir.expr import BinaryOp
from ...ir.rules import identity
from ...target import Target
from .abilities import has_rounding, scaled_bytes
from .arithmetic import Arithmetic
from .builder import Builder
from .casts import Casts
from .conditions import Conditions, Value
from .dtypes import literal, memory_type, value_type, vector_type
from .indices import Indices
from .math import MathEmitter
from .memory import Memory
from .point import Point

_ELEMENTARY = ("exp", "log", "sqrt", "rsqrt", "tanh", "sigmoid", "erf", "gelu", "sin", "cos")
_INT64 = DType("int", 64)
_INT32 = DType("int", 32)


class Values:
    """Emits expressions. In a vector loop a value is a vector once it depends on the lane."""

    def __init__(
        self,
        builder: Builder,
        point: Point,
        indices: Indices,
        conditions: Conditions,
        memory: Memory,
        target: Target,
    ) -> None:
        self._b = builder
        self._point = point
        self._indices = indices
        self._conditions = conditions
        self._memory = memory
        self._target = target
        self._contract = target.math == "reassoc"
        self._arithmetic: dict[int | None, Arithmetic] = {}
        self._casts: dict[int | None, Casts] = {}
        self._math: dict[tuple[str, int | None], MathEmitter] = {}
        self._emit: dict[type, Callable[[Any], Value]] = {
            Const: self._const,
            IndexValue: self._index,
            Load: memory.load,
            Binary: self._binary,
            Compare: self._compare,
            Unary: self._unary,
            InBounds: self._in_bounds,
            Select: self._select,
            Cast: self._cast,
        }

    def value(self, e: Expr) -> Value:
        """The expression's value. Raises BuildError for what has no code."""
        return self._emit[type(e)](e)

    def moved(self, e: Expr) -> Value:
        """The value of what only moves elements, as it stands in memory: nothing is converted."""
        if type(e) is Load:
            return self._memory.load_bits(e, zero=False)
        if type(e) is Select and type(e.cond) is InBounds:
            return self._guarded(e, e.cond, bits=True)
        if type(e) is Select:
            return self._choice(self.value(e.cond), memory_type(e.dtype), self.moved(e.a), self.moved(e.b))
        return self._memory.to_memory(self.value(e), e.dtype)

    def across(self, op: BinaryOp, dtype: DType, v: Value) -> str:
        """All lanes of a vector combined: halves with each other, down to one element."""
        point, kind = self._point, value_type(dtype)
        x, lanes = self._memory.wide(v, kind), point.lanes
        assert lanes is not None
        count = lanes
        while count > 1:
            wide, half = vector_type(kind, count), count // 2
            ends: list[str] = []
            for first in (0, half):
                if half == 1:
                    ends.append(self._b.shared(f"extractelement {wide} {x}, i64 {first}"))
                    continue
                at = ", ".join(f"i32 {n}" for n in range(first, first + half))
                ends.append(self._b.shared(f"shufflevector {wide} {x}, {wide} poison, <{half} x i32> <{at}>"))
            point.lanes = count = half
            x = self._ops(half > 1).binary(op, dtype, ends[0], ends[1])
        point.lanes = lanes
        return x

    def combined(self, op: BinaryOp, dtype: DType, own: Value, part: Value) -> Value:
        """The element that a reduction has, and a scalar part of it; a start that changes nothing is left
        out."""
        neutral = identity(op, dtype)
        if own[0] == literal(neutral.value, dtype):
            return part
        return self._ops(False).binary(op, dtype, own[0], part[0]), False

    def select(self, bit: Value, dtype: DType, a: Value, b: Value) -> Value:
        """a where the bit is set, else b."""
        return self._choice(bit, value_type(dtype), a, b)

    def _choice(self, bit: Value, element: str, a: Value, b: Value) -> Value:
        is_vector = bit[1] or a[1] or b[1]
        lanes = self._point.lanes if is_vector else None
        x, y = (self._memory.wide(v, element) if is_vector else v[0] for v in (a, b))
        kind, bits = vector_type(element, lanes), vector_type("i1", lanes if bit[1] else None)
        put = self._b.shared if is_vector else self._b.hoisted
        return put(f"select {bits} {bit[0]}, {kind} {x}, {kind} {y}"), is_vector

    @property
    def declarations(self) -> set[str]:
        """The intrinsics that elementary functions call."""
        return {d for m in self._math.values() for d in m.declarations}

    # ---- one method for each type of expression ----
    def _const(self, e: Const) -> Value:
        return literal(e.value, e.dtype), False

    def _index(self, e: IndexValue) -> Value:
        index = self._indices.at(e.index)
        if not index.stride and not index.lane_terms:
            whole = self._indices.total(index.terms, index.constant)
            if isinstance(whole, int):
                return self._wrapped(whole, e.dtype), False
            return self._casts_of(False).cast(whole, _INT64, e.dtype), False
        vector, element = self._indices.vector(index)
        return self._casts_of(True).cast(vector, _INT32 if element == "i32" else _INT64, e.dtype), True

    def _binary(self, e: Binary) -> Value:
        dtype = e.a.dtype
        if self._contract and dtype.is_float and not dtype.is_narrow and e.op in ("add", "sub"):
            fused = self._fused(e, dtype)
            if fused is not None:
                return fused
        a, b = self.value(e.a), self.value(e.b)
        is_vector = a[1] or b[1]
        constant = e.b.value if type(e.b) is Const else None
        x, y = self._same(a, dtype, is_vector), self._same(b, dtype, is_vector)
        if e.op == "pow" and dtype.is_float:
            power = self._math_of(dtype, is_vector).pow(x, y, constant)
            return self._rounded(power, dtype, is_vector), is_vector
        return self._ops(is_vector).binary(e.op, dtype, x, y, constant), is_vector

    def _fused(self, e: Binary, dtype: DType) -> Value | None:
        """A sum or difference with a product in it, as one multiply-add."""
        if type(e.b) is Binary and e.b.op == "mul":
            product, addend = e.b, e.a
        elif type(e.a) is Binary and e.a.op == "mul":
            product, addend = e.a, e.b
        else:
            return None
        a, b, c = self.value(product.a), self.value(product.b), self.value(addend)
        is_vector = a[1] or b[1] or c[1]
        ops = self._ops(is_vector)
        x, y, z = (self._same(v, dtype, is_vector) for v in (a, b, c))
        if e.op == "sub":
            if product is e.b:
                x = ops.unary("neg", dtype, x)
            else:
                z = ops.unary("neg", dtype, z)
        return ops.multiply_add(dtype, x, y, z), is_vector

    def _compare(self, e: Compare) -> Value:
        a, b = self.value(e.a), self.value(e.b)
        dtype, is_vector = e.a.dtype, a[1] or b[1]
        x, y = self._same(a, dtype, is_vector), self._same(b, dtype, is_vector)
        return self._ops(is_vector).compare(e.op, dtype, x, y), is_vector

    def _unary(self, e: Unary) -> Value:
        dtype = e.a.dtype
        x, is_vector = self.value(e.a)
        if e.op in _ELEMENTARY and dtype.is_float:
            out = getattr(self._math_of(dtype, is_vector), e.op)(x)
            return self._rounded(out, dtype, is_vector), is_vector
        return self._ops(is_vector).unary(e.op, dtype, x), is_vector

    def _in_bounds(self, e: InBounds) -> Value:
        c = self._conditions.all_of(e.conditions)
        return ("true" if c else "false", False) if isinstance(c, bool) else c

    def _select(self, e: Select) -> Value:
        if type(e.cond) is InBounds:
            return self._guarded(e, e.cond, bits=False)
        return self.select(self.value(e.cond), e.dtype, self.value(e.a), self.value(e.b))

    def _guarded(self, e: Select, cond: InBounds, bits: bool) -> Value:
        """The reads of `a` happen only where the condition holds. `bits`: as it stands in memory."""
        emit = self.moved if bits else self.value
        c = self._conditions.all_of(cond.conditions)
        if isinstance(c, bool):
            return emit(e.a if c else e.b)
        before = self._memory.reading
        alone = not before and type(e.a) is Load and type(e.b) is Const and e.b.value == 0
        self._memory.reading = before + cond.conditions
        if alone:
            assert type(e.a) is Load
            a = self._memory.load_bits(e.a, zero=True) if bits else self._memory.load_or_zero(e.a)
        else:
            a = emit(e.a)
        self._memory.reading = before
        element = memory_type(e.dtype) if bits else value_type(e.dtype)
        return a if alone else self._choice(c, element, a, emit(e.b))

    def _cast(self, e: Cast) -> Value:
        x, is_vector = self.value(e.a)
        if e.a.dtype == e.dtype:
            return x, is_vector
        return self._casts_of(is_vector).cast(x, e.a.dtype, e.dtype), is_vector

    # ---- helpers ----
    def _same(self, v: Value, dtype: DType, is_vector: bool) -> str:
        """The operand as a vector where the other one is."""
        return self._memory.wide(v, value_type(dtype)) if is_vector else v[0]

    def _rounded(self, x: str, dtype: DType, is_vector: bool) -> str:
        """What float gives as a value of a narrower dtype."""
        return self._memory.narrow(is_vector).rounded(x, dtype) if dtype.is_narrow else x

    def _wrapped(self, value: int, dtype: DType) -> str:
        if dtype.is_float or dtype.is_bool:
            return literal(value, dtype)
        low, _ = dtype.limits
        return literal((value - low) % (1 << dtype.bits) + low, dtype)

    def _ops(self, is_vector: bool) -> Arithmetic:
        lanes = self._point.lanes if is_vector else None
        ops = self._arithmetic.get(lanes)
        if ops is None:
            ops = Arithmetic(
                self._b,
                lanes,
                self._memory.narrow(is_vector),
                contract=self._contract,
                has_rounding=has_rounding(self._target),
            )
            self._arithmetic[lanes] = ops
        return ops

    def _casts_of(self, is_vector: bool) -> Casts:
        lanes = self._point.lanes if is_vector else None
        casts = self._casts.get(lanes)
        if casts is None:
            casts = self._casts[lanes] = Casts(self._b, lanes, self._memory.narrow(is_vector))
        return casts

    def _math_of(self, dtype: DType, is_vector: bool) -> MathEmitter:
        key = value_type(dtype), self._point.lanes if is_vector else None
        math = self._math.get(key)
        if math is None:
            put = self._b.shared if is_vector else self._b.hoisted
            math = self._math[key] = MathEmitter(
                put,
                *key,
                has_fma=self._target.has_fma,
                scaled_bytes=scaled_bytes(self._target),
            )
        return math
