"""Elementary functions as LLVM instructions: polynomials, for one value or a vector of them.

LLVM's own exp, log and erf on vectors become a libm call for each lane, eight times slower. These are right
for ±inf, NaN and denormal arguments and results; rounding is to nearest, and no instruction may be
reassociated.
"""

import struct
from collections.abc import Callable, Sequence

from .math_tables import TABLES, TANH_SMALL

MAX_ULP = {
    "exp": 1.0,
    "log": 0.85,
    "erf": 1.3,
    "tanh": 1.5,
    "sigmoid": 2.0,
    "sqrt": 0.5,
    "rsqrt": 1.5,
}
"""Largest error of each function, in units of the last place of the exact result, of float and of double."""


class MathEmitter:
    """Emits elementary functions of values of one type through ``put``.

    The errors stated were found over all floats and over random doubles, with and without fused multiply-add.

    ``put`` takes an instruction such as ``fadd <8 x float> %a, %b``, emits it and returns its name; the
    same text may give the same name. ``lanes`` is None for scalars. ``declarations`` collects the
    intrinsics that the instructions call.
    """

    def __init__(
        self, put: Callable[[str], str], element: str, lanes: int | None = None, *, has_fma: bool
    ) -> None:
        if element not in TABLES:
            raise ValueError(f"no elementary functions of {element}; known: {', '.join(TABLES)}")
        self.declarations: set[str] = set()
        self._put = put
        self._element = element
        self._lanes = lanes
        self._tables = t = TABLES[element]
        self._type = self._vector(element)
        self._bits_type = self._vector(f"i{t.bits}")
        self._suffix = f"f{t.bits}" if lanes is None else f"v{lanes}f{t.bits}"
        # llvm.fma on a processor without the instruction is a library call.
        self._fma_name = "fma" if has_fma else "fmuladd"

    def exp(self, x: str) -> str:
        """e^x. Largest error found: float 0.99, double 0.98 ulp."""
        t = self._tables
        x = self._clamp(x, t.exp_low, t.exp_high)
        shifted, r = self._reduce(x)
        # 2^n may be no normal number: multiply by 2^(n/2) and by 2^(n - n/2), of which only the second can
        # round.
        magic = self._const(t.round_magic)
        half = self._fma(self._sub(shifted, magic), self._const(0.5), magic)
        rest = self._sub(shifted, self._sub(half, magic))
        power = self._add(self._const(1.0), self._expm1_reduced(r))
        return self._mul(self._mul(power, self._power_of_two(half)), self._power_of_two(rest))

    def sigmoid(self, x: str) -> str:
        """1 / (1 + e^-x). Largest error found: float 1.87, double 1.84 ulp.

        With z = e^-|x| and w = z / (1 + z) it is z·(1 - w) below 0 and 1 - w above, so that small results
        are as exact as z: the quotient alone would add its two roundings to those of z.
        """
        z = self.exp(self._negate(self._call("fabs", x)))
        one = self._const(1.0)
        w = self._div(z, self._add(one, z))
        factor = self._select(self._compare("olt", x, self._const(0.0)), z, one)
        return self._fma(self._negate(factor), w, factor)

    def tanh(self, x: str) -> str:
        """x + x³·P(x²) up to 0.55, 1 - 2 / (e^2|x| + 1) above, with the sign of x.

        Largest error found: float 1.45, double 1.41 ulp.
        """
        t = self._tables
        one, two = self._const(1.0), self._const(2.0)
        size = self._call("fabs", x)
        square = self._mul(size, size)
        small = self._fma(self._mul(size, square), self._polynomial(t.tanh, square), size)
        a = self._at_most(size, t.tanh_one)
        shifted, r = self._reduce(self._add(a, a))
        below = self._fma(self._power_of_two(shifted), self._add(one, self._expm1_reduced(r)), one)
        large = self._sub(one, self._div(two, below))
        is_small = self._compare("olt", size, self._const(TANH_SMALL))
        return self._call("copysign", self._select(is_small, small, large), x)

    def erf(self, x: str) -> str:
        """The error function: x + x·P(x²) up to 1, 1 - e^-Q(|x|) above, with the sign of x.

        Largest error found: float 1.27, double 1.19 ulp.
        """
        t = self._tables
        one = self._const(1.0)
        size = self._call("fabs", x)
        small = self._fma(size, self._polynomial(t.erf_small, self._mul(size, size)), size)
        a = self._at_most(size, t.erf_one)
        u = self._sub(a, self._const(t.erf_centre)) if t.erf_centre else a
        exponent = self._negate(self._polynomial(t.erf_large, u))
        shifted, r = self._reduce(exponent)
        power = self._negate(self._power_of_two(shifted))
        large = self._fma(power, self._add(one, self._expm1_reduced(r)), one)
        return self._call("copysign", self._select(self._compare("olt", size, one), small, large), x)

    def log(self, x: str) -> str:
        """The natural logarithm: -inf of ±0, NaN below 0.

        Largest error found: float 0.84, double 0.80 ulp.
        """
        exponent, mantissa = self._split(x)
        f = self._sub(mantissa, self._const(1.0))
        result = self._log_float(exponent, f) if self._element == "float" else self._log_double(exponent, f)
        zero, inf = self._const(0.0), self._const(float("inf"))
        result = self._select(self._compare("ueq", x, inf), x, result)  # NaN too
        result = self._select(self._compare("olt", x, zero), self._const(float("nan")), result)
        return self._select(self._compare("oeq", x, zero), self._const(float("-inf")), result)

    def sqrt(self, x: str) -> str:
        """The square root, correctly rounded; NaN below 0."""
        return self._call("sqrt", x)

    def rsqrt(self, x: str) -> str:
        """1 / sqrt(x): inf of 0, of its sign. Largest error found: float 1.50, double 1.50 ulp."""
        return self._div(self._const(1.0), self._call("sqrt", x))

    def _reduce(self, x: str) -> tuple[str, str]:
        """x = n·ln2 + r with |r| ≤ ln2/2, for |x| ≤ 800: n plus the magic number, and r."""
        t = self._tables
        magic = self._const(t.round_magic)
        shifted = self._fma(x, self._const(1.4426950408889634), magic)
        n = self._sub(shifted, magic)
        r = self._fma(n, self._const(-t.ln2_high), x)
        return shifted, self._fma(n, self._const(-t.ln2_low), r)

    def _power_of_two(self, shifted: str) -> str:
        """2^n of n plus the magic number: its low bits are the biased exponent."""
        t = self._tables
        bits = self._put(f"bitcast {self._type} {shifted} to {self._bits_type}")
        exponent = self._put(f"shl {self._bits_type} {bits}, {self._int(t.mantissa)}")
        return self._put(f"bitcast {self._bits_type} {exponent} to {self._type}")

    def _expm1_reduced(self, r: str) -> str:
        """e^r - 1 = r + r²·P(r) on the reduced range."""
        return self._fma(self._mul(r, r), self._polynomial(self._tables.expm1, r), r)

    def _split(self, x: str) -> tuple[str, str]:
        """x = 2^e·m with m from log_from to twice that: e as a floating-point number, and m. Of x > 0
        only.
        """
        t = self._tables
        ints = self._bits_type
        tiny = self._compare("olt", x, self._const(2.0 ** (1 - t.bias)))
        normal = self._select(tiny, self._mul(x, self._const(2.0**t.mantissa)), x)
        bits = self._put(f"bitcast {self._type} {normal} to {ints}")
        start = self._bits_of(t.log_from)
        bits = self._put(f"add {ints} {bits}, {self._int(self._bits_of(1.0) - start)}")
        # The biased exponent in the low bits of 2^mantissa makes it a number, without a conversion of
        # integers.
        biased = self._put(f"lshr {ints} {bits}, {self._int(t.mantissa)}")
        biased = self._put(f"or {ints} {biased}, {self._int(self._bits_of(2.0**t.mantissa))}")
        offset = 2.0**t.mantissa + t.bias
        exponent = self._sub(
            self._put(f"bitcast {ints} {biased} to {self._type}"),
            self._select(tiny, self._const(offset + t.mantissa), self._const(offset)),
        )
        bits = self._put(f"and {ints} {bits}, {self._int(2**t.mantissa - 1)}")
        bits = self._put(f"add {ints} {bits}, {self._int(start)}")
        return exponent, self._put(f"bitcast {ints} {bits} to {self._type}")

    def _log_float(self, exponent: str, f: str) -> str:
        """e·ln2 + f - f²/2 + f³·P(f), the small terms first."""
        t = self._tables
        square = self._mul(f, f)
        tail = self._mul(self._mul(square, f), self._polynomial(t.log, f))
        tail = self._fma(exponent, self._const(t.ln2_low), tail)
        tail = self._fma(square, self._const(-0.5), tail)
        return self._fma(exponent, self._const(t.ln2_high), self._add(f, tail))

    def _log_double(self, exponent: str, f: str) -> str:
        """log(1+f) = f - (f²/2 - s·(f²/2 + R)) with s = f/(2+f), R = s²·P(s²)."""
        t = self._tables
        s = self._div(f, self._add(self._const(2.0), f))
        z = self._mul(s, s)
        half_square = self._mul(self._mul(f, self._const(0.5)), f)
        rest = self._fma(z, self._polynomial(t.log, z), half_square)
        tail = self._fma(s, rest, self._mul(exponent, self._const(t.ln2_low)))
        low = self._sub(self._sub(half_square, tail), f)
        return self._fma(exponent, self._const(t.ln2_high), self._negate(low))

    def _polynomial(self, coefficients: Sequence[float], x: str) -> str:
        """Horner's rule, lowest power first in the coefficients."""
        value = self._const(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            value = self._fma(value, x, self._const(c))
        return value

    def _clamp(self, x: str, low: float, high: float) -> str:
        """x within the limits; NaN stays NaN, as a comparison with it is false."""
        low_value = self._const(low)
        return self._at_most(self._select(self._compare("olt", x, low_value), low_value, x), high)

    def _at_most(self, x: str, high: float) -> str:
        value = self._const(high)
        return self._select(self._compare("ogt", x, value), value, x)

    def _fma(self, x: str, y: str, z: str) -> str:
        return self._call(self._fma_name, x, y, z)

    def _add(self, x: str, y: str) -> str:
        return self._put(f"fadd {self._type} {x}, {y}")

    def _sub(self, x: str, y: str) -> str:
        return self._put(f"fsub {self._type} {x}, {y}")

    def _mul(self, x: str, y: str) -> str:
        return self._put(f"fmul {self._type} {x}, {y}")

    def _div(self, x: str, y: str) -> str:
        return self._put(f"fdiv {self._type} {x}, {y}")

    def _negate(self, x: str) -> str:
        return self._put(f"fneg {self._type} {x}")

    def _compare(self, how: str, x: str, y: str) -> str:
        return self._put(f"fcmp {how} {self._type} {x}, {y}")

    def _select(self, condition: str, x: str, y: str) -> str:
        return self._put(f"select {self._vector('i1')} {condition}, {self._type} {x}, {self._type} {y}")

    def _call(self, name: str, *values: str) -> str:
        function = f"@llvm.{name}.{self._suffix}"
        types = ", ".join([self._type] * len(values))
        self.declarations.add(f"declare {self._type} {function}({types})")
        return self._put(f"call {self._type} {function}({', '.join(f'{self._type} {v}' for v in values)})")

    def _vector(self, element: str) -> str:
        return element if self._lanes is None else f"<{self._lanes} x {element}>"

    def _const(self, value: float) -> str:
        """A literal: LLVM writes a float as the double of the same value."""
        word = f"0x{struct.unpack('<Q', struct.pack('<d', self._rounded(value)))[0]:016X}"
        return word if self._lanes is None else f"splat ({self._element} {word})"

    def _int(self, value: int) -> str:
        return str(value) if self._lanes is None else f"splat (i{self._tables.bits} {value})"

    def _rounded(self, value: float) -> float:
        return value if self._element == "double" else float(struct.unpack("<f", struct.pack("<f", value))[0])

    def _bits_of(self, value: float) -> int:
        formats = ("<f", "<I") if self._element == "float" else ("<d", "<Q")
        return int(struct.unpack(formats[1], struct.pack(formats[0], value))[0])
