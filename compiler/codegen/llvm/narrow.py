"""float16 and bfloat16: 16 bits in memory, and as a value a float that the dtype holds.

An operation of theirs is that of float, rounded: float has more than twice their digits, so that what comes
out is the exact result rounded once. NumPy and ml_dtypes compute in the same way. Conversions of float16 are
the processor's where it has them; LLVM would call a library elsewhere. Those of bfloat16 are always integer
arithmetic: the instructions of x86 take denormal numbers for 0.
"""

from __future__ import annotations

from collections.abc import Callable

from ...ir import DType
from .dtypes import literal, vector_type

_FLOAT = DType("float", 32)
_SIGN = -(2**31)
_QUIET = 0x400000


class Narrow:
    """Emits conversions of values with `lanes` elements (None: scalars) through `put`.

    has_half: whether the processor converts between float16 and float32.
    """

    def __init__(self, put: Callable[[str], str], lanes: int | None, *, has_half: bool) -> None:
        self._put = put
        self._lanes = lanes
        self._has_half = has_half
        self._type = vector_type("float", lanes)
        self._ints = vector_type("i32", lanes)
        self._shorts = vector_type("i16", lanes)
        self._bits = vector_type("i1", lanes)

    def unpack(self, x: str, dtype: DType) -> str:
        """16 bits of memory as a float."""
        if dtype.code == "bfloat":
            wide = self._put(f"zext {self._shorts} {x} to {self._ints}")
            return self._to_float(self._op("shl", wide, 16))
        if self._has_half:
            half = self._put(f"bitcast {self._shorts} {x} to {self._half}")
            return self._put(f"fpext {self._half} {half} to {self._type}")
        wide = self._put(f"zext {self._shorts} {x} to {self._ints}")
        size = self._op("shl", self._op("and", wide, 0x7FFF), 13)
        # The exponents' biases differ by 112; a product with a power of two makes denormal numbers normal.
        scaled = self._put(f"fmul {self._type} {self._to_float(size)}, {self._const(2.0**112)}")
        beyond = self._put(f"icmp ugt {self._ints} {size}, {self._int(0x7BFF << 13)}")
        infinite = self._op("or", size, 0x7F800000)
        number = self._select(beyond, infinite, self._to_int(scaled))
        sign = self._op("shl", self._op("and", wide, 0x8000), 16)
        return self._to_float(self._both("or", number, sign))

    def pack(self, x: str, dtype: DType) -> str:
        """A float that the dtype holds as 16 bits of memory."""
        if dtype.code == "bfloat":
            return self._short(self._op("lshr", self._to_int(x), 16))
        if self._has_half:
            half = self._put(f"fptrunc {self._type} {x} to {self._half}")
            return self._put(f"bitcast {self._half} {half} to {self._shorts}")
        bits = self._to_int(x)
        sign = self._op("and", bits, _SIGN)
        size = self._both("xor", bits, sign)
        # 0.5 has the smallest denormal number for its last place.
        raised = self._put(f"fadd {self._type} {self._to_float(size)}, {self._const(0.5)}")
        tiny = self._op("sub", self._to_int(raised), 0x3F000000)
        digits = self._op("lshr", size, 13)
        normal = self._op("sub", digits, 112 << 10)
        infinite = self._op("and", digits, 0x7FFF)
        is_tiny = self._put(f"icmp ult {self._ints} {size}, {self._int(113 << 23)}")
        is_infinite = self._put(f"icmp uge {self._ints} {size}, {self._int(0x7F800000)}")
        number = self._select(is_infinite, infinite, self._select(is_tiny, tiny, normal))
        return self._short(self._both("or", number, self._op("lshr", sign, 16)))

    def rounded(self, x: str, dtype: DType, *, foreign: bool = False) -> str:
        """A float as the nearest one that the dtype holds, to even at ties. `foreign`: a NaN may have digits
        that the dtype lacks; what operations on values of the dtype give has none.
        """
        if dtype.code == "bfloat":
            return self._rounded_bits(x, 16, foreign)
        if self._has_half:
            half = self._put(f"fptrunc {self._type} {x} to {self._half}")
            return self._put(f"fpext {self._half} {half} to {self._type}")
        return self._rounded_half(x, foreign)

    def odd(self, x: str) -> str:
        """A double as a float, rounded to odd: where float does not hold the number, the neighbour whose last
        digit is 1. Rounding that again gives what rounding once would have.
        """
        doubles = vector_type("double", self._lanes)
        near = self._put(f"fptrunc {doubles} {x} to {self._type}")
        back = self._put(f"fpext {self._type} {near} to {doubles}")
        bits = self._to_int(near)
        inexact = self._put(f"fcmp one {doubles} {back}, {x}")
        even = self._put(f"icmp eq {self._ints} {self._op('and', bits, 1)}, {self._int(0)}")
        moves = self._put(f"and {self._bits} {inexact}, {even}")
        # Away from 0 is above a positive number and below a negative one.
        above = self._put(f"fcmp ogt {doubles} {back}, {x}")
        negative = self._put(f"icmp slt {self._ints} {bits}, {self._int(0)}")
        away = self._put(f"xor {self._bits} {above}, {negative}")
        step = self._select(away, self._int(-1), self._int(1))
        moved = self._both("add", bits, self._select(moves, step, self._int(0)))
        return self._to_float(moved)

    def _rounded_bits(self, x: str, dropped: int, foreign: bool) -> str:
        """x without its last digits. One whose digits are all set becomes the next power of two, or
        infinity.
        """
        bits = self._to_int(x)
        last = self._op("and", self._op("lshr", bits, dropped), 1)
        up = self._both("add", self._op("add", bits, (1 << (dropped - 1)) - 1), last)
        if foreign:
            is_nan = self._put(f"fcmp uno {self._type} {x}, {x}")
            up = self._select(is_nan, self._op("or", bits, _QUIET), up)
        return self._to_float(self._op("and", up, -(1 << dropped)))

    def _rounded_half(self, x: str, foreign: bool) -> str:
        bits = self._to_int(x)
        sign = self._op("and", bits, _SIGN)
        absolute = self._to_float(self._both("xor", bits, sign))
        normal = self._to_int(self._rounded_bits(absolute, 13, foreign))
        beyond = self._put(f"icmp uge {self._ints} {normal}, {self._int(0x47800000)}")
        is_number = self._put(f"fcmp ord {self._type} {x}, {x}")
        infinite = self._put(f"and {self._bits} {beyond}, {is_number}")
        number = self._select(infinite, self._int(0x7F800000), normal)
        raised = self._put(f"fadd {self._type} {absolute}, {self._const(0.5)}")
        tiny = self._to_int(self._put(f"fsub {self._type} {raised}, {self._const(0.5)}"))
        is_tiny = self._put(f"fcmp olt {self._type} {absolute}, {self._const(2.0**-14)}")
        return self._to_float(self._both("or", self._select(is_tiny, tiny, number), sign))

    @property
    def _half(self) -> str:
        return vector_type("half", self._lanes)

    def _to_int(self, x: str) -> str:
        return self._put(f"bitcast {self._type} {x} to {self._ints}")

    def _to_float(self, x: str) -> str:
        return self._put(f"bitcast {self._ints} {x} to {self._type}")

    def _short(self, x: str) -> str:
        return self._put(f"trunc {self._ints} {x} to {self._shorts}")

    def _op(self, name: str, x: str, by: int) -> str:
        return self._both(name, x, self._int(by))

    def _both(self, name: str, x: str, y: str) -> str:
        return self._put(f"{name} {self._ints} {x}, {y}")

    def _select(self, bit: str, x: str, y: str) -> str:
        return self._put(f"select {self._bits} {bit}, {self._ints} {x}, {self._ints} {y}")

    def _int(self, value: int) -> str:
        return str(value) if self._lanes is None else f"splat (i32 {value})"

    def _const(self, value: float) -> str:
        text = literal(value, _FLOAT)
        return text if self._lanes is None else f"splat (float {text})"
