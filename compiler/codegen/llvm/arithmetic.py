"""Operations on values of one dtype, defined for every operand.

Integers wrap around, as NumPy's do. Division of integers by zero gives 0, and so does the remainder; the
lowest integer divided by -1 is itself. A shift by the width or more (or by less than 0) leaves what
shifting one bit at a time would: 0, or -1 for a negative number shifted right. `min` and `max` hand on NaN;
of zeros of both signs they give either.
float16 and bfloat16 are rounded after every operation.
"""

from __future__ import annotations

from collections.abc import Callable

from ...ir import DType
from ...ir.expr import BinaryOp, CompareOp, UnaryOp
from ..errors import BuildError
from .builder import Builder
from .dtypes import literal, suffix, value_type, vector_type
from .narrow import Narrow

_FLOAT = {"add": "fadd", "sub": "fsub", "mul": "fmul", "truediv": "fdiv"}
_INTEGER = {"add": "add", "sub": "sub", "mul": "mul", "and": "and", "or": "or", "xor": "xor"}
_FLOAT_COMPARE = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}
_ROUNDING = {"floor": "floor", "ceil": "ceil", "round": "roundeven"}


class Arithmetic:
    """Emits operations on values with `lanes` elements (None: scalars). Operands and results are names or
    literals.

    contract: whether a product may be rounded together with the sum it goes into.
    has_rounding: whether the processor rounds floats to integers in one instruction.
    """

    def __init__(
        self, builder: Builder, lanes: int | None, narrow: Narrow, *, contract: bool, has_rounding: bool
    ) -> None:
        self._b = builder
        self._put: Callable[[str], str] = builder.shared if lanes is not None else builder.hoisted
        self.lanes = lanes
        self._narrow = narrow
        self._contract = " contract" if contract else ""
        self._has_rounding = has_rounding

    def binary(
        self, op: BinaryOp, dtype: DType, a: str, b: str, constant: int | float | bool | None = None
    ) -> str:
        """`constant` is the second operand where it is an immediate. Raises BuildError for what the dtype
        does not have.
        """
        kind = self.kind(dtype)
        if dtype.is_float:
            if op in _FLOAT and dtype.is_narrow:
                return self._narrow.rounded(self._put(f"{_FLOAT[op]} {kind} {a}, {b}"), dtype)
            if op in _FLOAT:
                return self._put(f"{_FLOAT[op]}{self._contract} {kind} {a}, {b}")
            if op in ("min", "max"):
                return self._extreme("olt" if op == "min" else "ogt", dtype, a, b)
        elif dtype.is_bool:
            if op in ("and", "or", "xor"):
                return self._put(f"{op} {kind} {a}, {b}")
            if op in ("min", "max"):
                return self._put(f"{'and' if op == 'min' else 'or'} {kind} {a}, {b}")
        elif op in _INTEGER:
            return self._put(f"{_INTEGER[op]} {kind} {a}, {b}")
        elif op in ("min", "max"):
            return self._call(f"{'s' if dtype.code == 'int' else 'u'}{op}", dtype, a, b)
        elif op in ("shl", "shr"):
            return self._shift(op, dtype, a, b, constant)
        elif op in ("floordiv", "floormod", "truncdiv", "truncmod"):
            return self._divide(op, dtype, a, b, constant)
        raise BuildError(f"no code for {op} of {dtype}")

    def multiply_add(self, dtype: DType, a: str, b: str, c: str) -> str:
        """a * b + c, rounded once where the processor can."""
        kind, f = self.kind(dtype), f"@llvm.fmuladd.{suffix(value_type(dtype), self.lanes)}"
        self._b.declare(kind, f, kind, kind, kind)
        put = self._b.put if self.lanes is not None else self._b.hoisted
        return put(f"call {kind} {f}({kind} {a}, {kind} {b}, {kind} {c})")

    def compare(self, op: CompareOp, dtype: DType, a: str, b: str) -> str:
        """A bit."""
        kind = self.kind(dtype)
        if dtype.is_float:
            return self._put(f"fcmp {_FLOAT_COMPARE[op]} {kind} {a}, {b}")
        sign = "" if op in ("eq", "ne") else "s" if dtype.code == "int" else "u"
        return self._put(f"icmp {sign}{op} {kind} {a}, {b}")

    def unary(self, op: UnaryOp, dtype: DType, a: str) -> str:
        """neg, abs, not, floor, ceil, round; the elementary functions stand in `math`."""
        kind = self.kind(dtype)
        if dtype.is_float:
            if op == "neg":
                return self._put(f"fneg {kind} {a}")
            if op == "abs":
                return self._call("fabs", dtype, a)
            if op in _ROUNDING:
                return (
                    self._call(_ROUNDING[op], dtype, a) if self._has_rounding else self._rounded(op, dtype, a)
                )
        elif op == "not":
            return self._put(
                f"xor {kind} {a}, {self.const(-1, dtype) if dtype.is_int else self.const(True, dtype)}"
            )
        elif dtype.is_int and op == "neg":
            return self._put(f"sub {kind} {self.const(0, dtype)}, {a}")
        elif dtype.is_int and op == "abs":
            if dtype.code == "uint":
                return a
            f = f"@llvm.abs.{suffix(value_type(dtype), self.lanes)}"
            self._b.declare(kind, f, kind, "i1 immarg")
            return self._put(f"call {kind} {f}({kind} {a}, i1 false)")
        raise BuildError(f"no code for {op} of {dtype}")

    def select(self, bit: str, dtype: DType, a: str, b: str) -> str:
        """a where the bit is set, else b."""
        kind = self.kind(dtype)
        return self._put(f"select {self._bits} {bit}, {kind} {a}, {kind} {b}")

    def kind(self, dtype: DType) -> str:
        """The type of the values."""
        return vector_type(value_type(dtype), self.lanes)

    def const(self, value: int | float | bool, dtype: DType) -> str:
        """An immediate, in every lane."""
        text = literal(value, dtype) if value != -1 or not dtype.is_int else "-1"
        return text if self.lanes is None else f"splat ({value_type(dtype)} {text})"

    @property
    def _bits(self) -> str:
        return vector_type("i1", self.lanes)

    def _call(self, name: str, dtype: DType, *operands: str) -> str:
        kind, f = self.kind(dtype), f"@llvm.{name}.{suffix(value_type(dtype), self.lanes)}"
        self._b.declare(kind, f, *[kind] * len(operands))
        return self._put(f"call {kind} {f}({', '.join(f'{kind} {x}' for x in operands)})")

    def _extreme(self, beyond: str, dtype: DType, a: str, b: str) -> str:
        """The one beyond the other, or a NaN. Each selection by an ordered comparison is one machine
        instruction, which gives its second operand where there is a NaN.
        """
        kind = self.kind(dtype)
        if not _is_number(a):
            # The NaNs are looked for in the second operand: where many steps go into one element, that is
            # not the one that they wait for.
            a, b = b, a
        out = self.select(self._put(f"fcmp {beyond} {kind} {a}, {b}"), dtype, a, b)
        if _is_number(a):
            return out
        return self.select(self._put(f"fcmp uno {kind} {a}, {a}"), dtype, a, out)

    def _shift(self, op: str, dtype: DType, a: str, b: str, constant: int | float | bool | None) -> str:
        kind, width = self.kind(dtype), dtype.bits
        arithmetic = op == "shr" and dtype.code == "int"
        name = "shl" if op == "shl" else "ashr" if arithmetic else "lshr"
        if constant is not None and 0 <= constant < width:
            return self._put(f"{name} {kind} {a}, {b}")
        last = self.const(width - 1, dtype)
        inside = self._put(f"icmp ule {kind} {b}, {last}")
        by = self.select(inside, dtype, b, last)
        shifted = self._put(f"{name} {kind} {a}, {by}")
        return shifted if arithmetic else self.select(inside, dtype, shifted, self.const(0, dtype))

    def _divide(self, op: str, dtype: DType, a: str, b: str, constant: int | float | bool | None) -> str:
        kind, zero = self.kind(dtype), self.const(0, dtype)
        signed = dtype.code == "int"
        quotient = op in ("floordiv", "truncdiv")
        by, is_zero = b, None
        if constant == 0:
            return zero
        if constant is None:
            is_zero = self._put(f"icmp eq {kind} {b}, {zero}")
            by = self.select(is_zero, dtype, self.const(1, dtype), b)
        if signed and (constant is None or constant == -1):
            # The lowest integer by -1 traps: negate, which wraps.
            minus = self._put(f"icmp eq {kind} {b}, {self.const(-1, dtype)}")
            by = self.select(minus, dtype, self.const(1, dtype), by)
        if signed:
            q = self._put(f"sdiv {kind} {a}, {by}")
            if constant is None or constant == -1:
                q = self.select(minus, dtype, self._put(f"sub {kind} {zero}, {a}"), q)
            r = self._put(f"sub {kind} {a}, {self._put(f'mul {kind} {q}, {b}')}")
            if op in ("floordiv", "floormod"):
                q, r = self._floored(dtype, q, r, b)
        else:
            q = self._put(f"udiv {kind} {a}, {by}")
            r = self._put(f"sub {kind} {a}, {self._put(f'mul {kind} {q}, {b}')}")
        out = q if quotient else r
        return out if is_zero is None else self.select(is_zero, dtype, zero, out)

    def _floored(self, dtype: DType, q: str, r: str, b: str) -> tuple[str, str]:
        """The quotient rounded down, and the remainder with the sign of the divisor."""
        kind, zero = self.kind(dtype), self.const(0, dtype)
        inexact = self._put(f"icmp ne {kind} {r}, {zero}")
        opposite = self._put(f"icmp slt {kind} {self._put(f'xor {kind} {r}, {b}')}, {zero}")
        down = self._put(f"and {self._bits} {inexact}, {opposite}")
        less = self._put(f"sub {kind} {q}, {self.const(1, dtype)}")
        more = self._put(f"add {kind} {r}, {b}")
        return self.select(down, dtype, less, q), self.select(down, dtype, more, r)

    def _rounded(self, op: str, dtype: DType, a: str) -> str:
        """Rounding by adding and subtracting 2^mantissa, where there is no instruction for it."""
        kind = self.kind(dtype)
        # Of the type of the values: a float16 may not hold it.
        wide = DType("float", 64 if dtype.bits == 64 else 32)
        magic = self.const(2.0**52 if wide.bits == 64 else 2.0**23, wide)
        size = self._call("fabs", dtype, a)
        near = self._put(f"fsub {kind} {self._put(f'fadd {kind} {size}, {magic}')}, {magic}")
        near = self._call("copysign", dtype, near, a)
        small = self._put(f"fcmp olt {kind} {size}, {magic}")
        if op != "round":
            over = self._put(f"fcmp {'ogt' if op == 'floor' else 'olt'} {kind} {near}, {a}")
            step = self._put(f"fsub {kind} {near}, {self.const(1.0 if op == 'floor' else -1.0, dtype)}")
            near = self._call("copysign", dtype, self.select(over, dtype, step, near), a)
        return self.select(small, dtype, near, a)


def _is_number(operand: str) -> bool:
    """Whether the operand is an immediate other than NaN."""
    return operand[0] != "%" and "0x7FF8" not in operand
