"""Elementary functions as LLVM instructions: polynomials, for one value or a vector of them.

LLVM's own exp, log and erf on vectors become a libm call for each lane, eight times slower. These are right
for ±inf, NaN and denormal arguments and results; rounding is to nearest, and no instruction may be
reassociated.
"""

import struct
from collections.abc import Callable, Sequence

from .math_functions import function
from .math_gelu import gelu_of_double, gelu_of_float
from .math_tables import TABLES, TANH_SMALL

MAX_ULP = {
    "exp": 1.2,
    "log": 0.85,
    "erf": 1.3,
    "tanh": 1.6,
    "sigmoid": 2.0,
    "sqrt": 0.5,
    "rsqrt": 1.5,
    "sin": 0.9,
    "cos": 0.9,
    "pow": 1.3,
    "gelu": 0.85,
}
"""Largest error of each function, in units of the last place of the exact result, of float; of double too
but for those of MAX_ULP_OF_DOUBLE."""

MAX_ULP_OF_DOUBLE = {**MAX_ULP, "gelu": 4.0}

MAX_PRODUCT = 8
"""Powers with a constant exponent up to this are products."""


class MathEmitter:
    """Emits elementary functions of values of one type through ``put``.

    The errors stated were found over all floats and over random doubles, with and without fused multiply-add.

    scaled_bytes: the sizes of the vectors that the processor multiplies by powers of two with `vscalef`.

    ``put`` takes an instruction such as ``fadd <8 x float> %a, %b``, emits it and returns its name; the
    same text may give the same name. ``lanes`` is None for scalars. ``declarations`` collects the
    intrinsics that the instructions call.
    """

    def __init__(
        self,
        put: Callable[[str], str],
        element: str,
        lanes: int | None = None,
        *,
        has_fma: bool,
        scaled_bytes: frozenset[int] = frozenset(),
    ) -> None:
        if element not in TABLES:
            raise ValueError(f"no elementary functions of {element}; known: {', '.join(TABLES)}")
        self.declarations: set[str] = set()
        self._put = put
        self._element = element
        self._lanes = lanes
        self.tables = t = TABLES[element]
        self._type = self._vector(element)
        self._bits_type = self._vector(f"i{t.bits}")
        self._suffix = f"f{t.bits}" if lanes is None else f"v{lanes}f{t.bits}"
        # llvm.fma on a processor without the instruction is a library call.
        self._has_fma = has_fma
        self._fma_name = "fma" if has_fma else "fmuladd"
        self._has_scaling = lanes is not None and lanes * t.bits // 8 in scaled_bytes

    def exp(self, x: str, low: str | None = None) -> str:
        """e^x, or e^(x + low) for a number below the last place of x. Largest error found: float 1.17, double
        1.12 ulp; with fused multiply-add 0.89 and 0.85.
        """
        return self._exp(self.at_most(x, self.tables.exp_high), low)

    def _exp(self, x: str, low: str | None = None) -> str:
        """e^(x + low), for x up to where it is infinite."""
        t = self.tables
        smallest = self.const(t.exp_low)
        x = self.select(self.compare("olt", x, smallest), smallest, x)
        shifted, r = self.reduce(x, 2 * t.bias)
        if low is not None:
            r = self.add(r, low)
        return self.scaled(self.exp_reduced(r), shifted)

    def sigmoid(self, x: str) -> str:
        """1 / (1 + e^-x). Largest error found: float 1.91, double 1.84 ulp.

        With z = e^-|x| and w = z / (1 + z) it is z·(1 - w) below 0 and 1 - w above, so that small results
        are as exact as z: the quotient alone would add its two roundings to those of z.
        """
        z = self._exp(self.negate(self.call("fabs", x)))
        one = self.const(1.0)
        w = self.div(z, self.add(one, z))
        factor = self.select(self.compare("olt", x, self.const(0.0)), z, one)
        return self.fma(self.negate(factor), w, factor)

    def tanh(self, x: str) -> str:
        """x + x³·P(x²) up to 0.55, 1 - 2 / (e^2|x| + 1) above, with the sign of x.

        Largest error found: float 1.56, double 1.52 ulp.
        """
        t = self.tables
        one, two = self.const(1.0), self.const(2.0)
        size = self.call("fabs", x)
        square = self.mul(size, size)
        small = self.fma(self.mul(size, square), self.polynomial(t.tanh, square), size)
        a = self.at_most(size, t.tanh_one)
        shifted, r = self.reduce(self.add(a, a), t.bias)
        below = self.fma(self._power_of_two(shifted), self.exp_reduced(r), one)
        large = self.sub(one, self.div(two, below))
        is_small = self.compare("olt", size, self.const(TANH_SMALL))
        return self.call("copysign", self.select(is_small, small, large), x)

    def erf(self, x: str) -> str:
        """The error function: x + x·P(x²) up to 1, 1 - e^-Q(|x|) above, with the sign of x.

        Largest error found: float 1.27, double 1.19 ulp.
        """
        t = self.tables
        one = self.const(1.0)
        size = self.call("fabs", x)
        small = self.fma(size, self.polynomial(t.erf_small, self.mul(size, size)), size)
        a = self.at_most(size, t.erf_one)
        u = self.sub(a, self.const(t.erf_centre)) if t.erf_centre else a
        exponent = self.negate(self.polynomial(t.erf_large, u))
        shifted, r = self.reduce(exponent, t.bias)
        power = self.negate(self._power_of_two(shifted))
        large = self.fma(power, self.exp_reduced(r), one)
        return self.call("copysign", self.select(self.compare("olt", size, one), small, large), x)

    def log(self, x: str) -> str:
        """The natural logarithm: -inf of ±0, NaN below 0.

        Largest error found: float 0.84, double 0.80 ulp.
        """
        exponent, mantissa = self.split(x)
        f = self.sub(mantissa, self.const(1.0))
        result = self._log_float(exponent, f) if self._element == "float" else self._log_double(exponent, f)
        zero, inf = self.const(0.0), self.const(float("inf"))
        result = self.select(self.compare("ueq", x, inf), x, result)  # NaN too
        result = self.select(self.compare("olt", x, zero), self.const(float("nan")), result)
        return self.select(self.compare("oeq", x, zero), self.const(float("-inf")), result)

    def sqrt(self, x: str) -> str:
        """The square root, correctly rounded; NaN below 0."""
        return self.call("sqrt", x)

    def rsqrt(self, x: str) -> str:
        """1 / sqrt(x): inf of 0, of its sign. Largest error found: float 1.50, double 1.50 ulp."""
        return self.div(self.const(1.0), self.call("sqrt", x))

    def gelu(self, x: str) -> str:
        """x·Φ(x): -0 of -infinity. Largest error found: float 0.81, double 3.6 ulp."""
        if self._element == "double":
            return gelu_of_double(self, x)
        wide = MathEmitter(self._put, "double", self._lanes, has_fma=self._has_fma)
        result = gelu_of_float(self, wide, x)
        self.declarations |= wide.declarations
        return result

    def sin(self, x: str) -> str:
        """The sine; NaN of infinities. Largest error found: float 0.51, double 0.80 ulp."""
        return self._own("sin", x)

    def cos(self, x: str) -> str:
        """The cosine; NaN of infinities. Largest error found: float 0.51, double 0.80 ulp."""
        return self._own("cos", x)

    def pow(self, x: str, y: str, exponent: int | float | None = None) -> str:
        """x^y, by the rules of C for what is 0, infinite or NaN. `exponent` is y where that is an immediate:
        0.5 and integers up to 8 become a root, products and quotients, within 8 ulp.

        Largest error found of the others: float 0.51, double 1.21 ulp.
        """
        if exponent == 0.5:
            return self._root(x)
        if exponent is None or not abs(exponent) <= MAX_PRODUCT or exponent != int(exponent):
            return self._own("pow", x, y)
        n, one = abs(int(exponent)), self.const(1.0)
        base = self.div(one, x) if exponent < 0 else x
        result: str | None = None
        while n:
            if n & 1:
                result = base if result is None else self.mul(result, base)
            n >>= 1
            if n:
                base = self.mul(base, base)
        return one if result is None else result

    def _root(self, x: str) -> str:
        """sqrt, but 0 of -0 and infinity of -infinity, as a power is."""
        infinite = self.compare("oeq", x, self.const(float("-inf")))
        size = self.select(infinite, self.const(float("inf")), x)
        return self.call("sqrt", self.add(size, self.const(0.0)))

    def _own(self, name: str, *operands: str) -> str:
        """A call of a function that stands in the module."""
        f = function(name, self._element, self._lanes, self._has_fma)
        self.declarations |= f.definitions
        given = ", ".join(f"{self._type} {x}" for x in operands)
        return self._put(f"call {self._type} @{f.symbol}({given})")

    def reduce(self, x: str, bias: int) -> tuple[str, str]:
        """x = n·ln2 + r with |r| ≤ ln2/2, for |x| ≤ 800: n + `bias` in the low bits of a float, and r."""
        t = self.tables
        magic = self.const(t.round_magic + bias)
        shifted = self.fma(x, self.const(1.4426950408889634), magic)
        n = self.sub(shifted, magic)
        r = self.fma(n, self.const(-t.ln2_high), x)
        return shifted, self.fma(n, self.const(-t.ln2_low), r)

    def _power_of_two(self, shifted: str) -> str:
        """2^n of n whose biased exponent stands in the low bits."""
        return self._exponent(self._put(f"bitcast {self._type} {shifted} to {self._bits_type}"))

    def _exponent(self, bits: str) -> str:
        """The number whose biased exponent stands in the low bits."""
        exponent = self._put(f"shl {self._bits_type} {bits}, {self._int(self.tables.mantissa)}")
        return self._put(f"bitcast {self._bits_type} {exponent} to {self._type}")

    def scaled(self, x: str, shifted: str) -> str:
        """x·2^n, rounded once, of n with twice the bias added: 2^n itself may be no normal number."""
        if self._has_scaling:
            n = self.sub(shifted, self.const(self.tables.round_magic + 2 * self.tables.bias))
            return self._scalef(x, n)
        ints = self._bits_type
        bits = self._put(f"bitcast {self._type} {shifted} to {ints}")
        # n/2 and n - n/2 have the bias each; only the second product can round.
        half = self._put(f"lshr {ints} {bits}, {self._int(1)}")
        rest = self._put(f"sub {ints} {bits}, {half}")
        return self.mul(self.mul(x, self._exponent(half)), self._exponent(rest))

    def times_power_of_two(self, x: str, shifted: str) -> str:
        """x·2^n of n in the low bits, where x and the result are normal."""
        ints = self._bits_type
        bits = self._put(f"bitcast {self._type} {shifted} to {ints}")
        exponent = self._put(f"shl {ints} {bits}, {self._int(self.tables.mantissa)}")
        sum_ = self._put(f"add {ints} {exponent}, {self._put(f'bitcast {self._type} {x} to {ints}')}")
        return self._put(f"bitcast {ints} {sum_} to {self._type}")

    def _scalef(self, x: str, n: str) -> str:
        assert self._lanes is not None
        bits = self.tables.bits
        size = self._lanes * bits
        mask = f"i{max(self._lanes, 8)}"
        function = f"@llvm.x86.avx512.mask.scalef.{'ps' if bits == 32 else 'pd'}.{size}"
        # Vectors of 512 bits say how to round: 4 is as ever.
        how = ", i32" if size == 512 else ""
        self.declarations.add(f"declare {self._type} {function}({f'{self._type}, ' * 3}{mask}{how})")
        given = f"{self._type} {x}, {self._type} {n}, {self._type} {x}, {mask} -1{how and how + ' 4'}"
        return self._put(f"call {self._type} {function}({given})")

    def exp_reduced(self, r: str) -> str:
        """e^r = 1 + r + r²·P(r) on the reduced range."""
        return self.polynomial((1.0, 1.0, *self.tables.exp), r)

    def split(self, x: str) -> tuple[str, str]:
        """x = 2^e·m with m from log_from to twice that: e as a floating-point number, and m. Of x > 0
        only.
        """
        t = self.tables
        ints = self._bits_type
        tiny = self.compare("olt", x, self.const(2.0 ** (1 - t.bias)))
        normal = self.select(tiny, self.mul(x, self.const(2.0**t.mantissa)), x)
        bits = self._put(f"bitcast {self._type} {normal} to {ints}")
        start = self._bits_of(t.log_from)
        bits = self._put(f"add {ints} {bits}, {self._int(self._bits_of(1.0) - start)}")
        # The biased exponent in the low bits of 2^mantissa makes it a number, without a conversion of
        # integers.
        biased = self._put(f"lshr {ints} {bits}, {self._int(t.mantissa)}")
        biased = self._put(f"or {ints} {biased}, {self._int(self._bits_of(2.0**t.mantissa))}")
        offset = 2.0**t.mantissa + t.bias
        exponent = self.sub(
            self._put(f"bitcast {ints} {biased} to {self._type}"),
            self.select(tiny, self.const(offset + t.mantissa), self.const(offset)),
        )
        bits = self._put(f"and {ints} {bits}, {self._int(2**t.mantissa - 1)}")
        bits = self._put(f"add {ints} {bits}, {self._int(start)}")
        return exponent, self._put(f"bitcast {ints} {bits} to {self._type}")

    def _log_float(self, exponent: str, f: str) -> str:
        """e·ln2 + f - f²/2 + f³·P(f), the small terms first."""
        t = self.tables
        square = self.mul(f, f)
        tail = self.mul(self.mul(square, f), self.polynomial(t.log, f))
        tail = self.fma(exponent, self.const(t.ln2_low), tail)
        tail = self.fma(square, self.const(-0.5), tail)
        return self.fma(exponent, self.const(t.ln2_high), self.add(f, tail))

    def _log_double(self, exponent: str, f: str) -> str:
        """log(1+f) = f - (f²/2 - s·(f²/2 + R)) with s = f/(2+f), R = s²·P(s²)."""
        t = self.tables
        s = self.div(f, self.add(self.const(2.0), f))
        z = self.mul(s, s)
        half_square = self.mul(self.mul(f, self.const(0.5)), f)
        rest = self.fma(z, self.polynomial(t.log, z), half_square)
        tail = self.fma(s, rest, self.mul(exponent, self.const(t.ln2_low)))
        low = self.sub(self.sub(half_square, tail), f)
        return self.fma(exponent, self.const(t.ln2_high), self.negate(low))

    def polynomial(self, coefficients: Sequence[float], x: str) -> str:
        """Horner's rule, lowest power first in the coefficients."""
        value = self.const(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            value = self.fma(value, x, self.const(c))
        return value

    def clamp(self, x: str, low: float, high: float) -> str:
        """x within the limits; NaN stays NaN, as a comparison with it is false."""
        low_value = self.const(low)
        return self.at_most(self.select(self.compare("olt", x, low_value), low_value, x), high)

    def at_most(self, x: str, high: float) -> str:
        value = self.const(high)
        return self.select(self.compare("ogt", x, value), value, x)

    def fma(self, x: str, y: str, z: str) -> str:
        return self.call(self._fma_name, x, y, z)

    def add(self, x: str, y: str) -> str:
        return self._put(f"fadd {self._type} {x}, {y}")

    def sub(self, x: str, y: str) -> str:
        return self._put(f"fsub {self._type} {x}, {y}")

    def mul(self, x: str, y: str) -> str:
        return self._put(f"fmul {self._type} {x}, {y}")

    def div(self, x: str, y: str) -> str:
        return self._put(f"fdiv {self._type} {x}, {y}")

    def negate(self, x: str) -> str:
        return self._put(f"fneg {self._type} {x}")

    def product(self, a: str, b: str) -> tuple[str, str]:
        """a·b as a sum: exactly, by a fused multiply-add or by halves (Dekker)."""
        p = self.mul(a, b)
        if self._has_fma:
            return p, self.call("fma", a, b, self.negate(p))
        (x, x_low), (y, y_low) = self._halves(a), self._halves(b)
        e = self.sub(self.mul(x, y), p)
        e = self.add(self.add(e, self.mul(x, y_low)), self.mul(x_low, y))
        return p, self.add(e, self.mul(x_low, y_low))

    def _halves(self, a: str) -> tuple[str, str]:
        c = self.mul(a, self.const(2.0 ** ((self.tables.mantissa + 2) // 2) + 1))
        high = self.sub(c, self.sub(c, a))
        return high, self.sub(a, high)

    def widened(self, x: str) -> str:
        """Floats as doubles."""
        return self._put(f"fpext {self._type} {x} to {self._vector('double')}")

    def narrowed(self, x: str) -> str:
        """Doubles as floats, rounded."""
        return self._put(f"fptrunc {self._vector('double')} {x} to {self._type}")

    def compare(self, how: str, x: str, y: str) -> str:
        return self._put(f"fcmp {how} {self._type} {x}, {y}")

    def select(self, condition: str, x: str, y: str) -> str:
        return self._put(f"select {self._vector('i1')} {condition}, {self._type} {x}, {self._type} {y}")

    def call(self, name: str, *values: str) -> str:
        function = f"@llvm.{name}.{self._suffix}"
        types = ", ".join([self._type] * len(values))
        self.declarations.add(f"declare {self._type} {function}({types})")
        return self._put(f"call {self._type} {function}({', '.join(f'{self._type} {v}' for v in values)})")

    def _vector(self, element: str) -> str:
        return element if self._lanes is None else f"<{self._lanes} x {element}>"

    def const(self, value: float) -> str:
        """A literal: LLVM writes a float as the double of the same value."""
        word = f"0x{struct.unpack('<Q', struct.pack('<d', self._rounded(value)))[0]:016X}"
        return word if self._lanes is None else f"splat ({self._element} {word})"

    def _int(self, value: int) -> str:
        return str(value) if self._lanes is None else f"splat (i{self.tables.bits} {value})"

    def _rounded(self, value: float) -> float:
        return value if self._element == "double" else float(struct.unpack("<f", struct.pack("<f", value))[0])

    def _bits_of(self, value: float) -> int:
        formats = ("<f", "<I") if self._element == "float" else ("<d", "<Q")
        return int(struct.unpack(formats[1], struct.pack(formats[0], value))[0])
