"""sin, cos and pow: functions of the module's own, since they are long and branch.

Each is written once for each type that the kernel uses, and called: `@tw.sin.v16f32`. Values of float are
computed in double, which leaves one rounding; values of double in pairs of doubles whose sum is the number.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import factorial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .math import MathEmitter


def _pi(bits: int) -> Fraction:
    """Within 2^-bits: Machin's 16·atan(1/5) - 4·atan(1/239)."""
    unit = 1 << (bits + 16)

    def inverse_tangent(n: int) -> int:
        term, total, k = unit // n, 0, 0
        while term:
            total += (-1) ** k * (term // (2 * k + 1))
            term, k = term // (n * n), k + 1
        return total

    return Fraction(16 * inverse_tangent(5) - 4 * inverse_tangent(239), unit)


_HALF_PI = _pi(300) / 2

#: Up to here n · π/2 is exact with the upper parts of π/2: n has 20 bits, each of the parts 33.
_MODERATE = 8.0e5
_PART = 33

_SIN = tuple((-1.0) ** n / factorial(2 * n + 1) for n in range(1, 9))
"""(sin(r) - r) / r³ in r²: Taylor's series, which on |r| ≤ π/4 leaves out less than 2^-62 of sin(r)."""

_COS = tuple((-1.0) ** n / factorial(2 * n) for n in range(2, 10))
"""(cos(r) - 1 + r²/2) / r⁴ in r²: as above, less than 2^-63."""

_ATANH = tuple(1 / (2 * n + 1) for n in range(2, 13))
"""(atanh(s)/s - 1 - s²/3) / s⁴ in s²: on |s| ≤ 0.1716 it leaves out less than 2^-66 of atanh(s)."""

Pair = tuple[str, str]
"""A sum of two doubles, the second below the last place of the first."""


@dataclass(frozen=True, slots=True)
class Function:
    """symbol: the name to call. definitions: texts of the functions, tables and intrinsics that it takes."""

    symbol: str
    definitions: frozenset[str]


@lru_cache(maxsize=128)
def function(name: str, element: str, lanes: int | None, has_fma: bool) -> Function:
    """sin, cos or pow of one element type and number of lanes. Largest errors found: of float 0.51 ulp; of
    double sin and cos 0.80, pow 1.21 ulp.
    """
    body = _Body(name, element, lanes, has_fma)
    return body.power() if name == "pow" else body.wave(name)


def _parts(x: Fraction, bits: int, count: int) -> tuple[float, ...]:
    """x as a sum of `count` numbers of `bits` bits, and a double for the rest."""
    out = []
    for _ in range(count):
        scale = Fraction(2) ** bits
        while x * scale < 2 ** (bits - 1):
            scale *= 2
        while x * scale >= 2**bits:
            scale /= 2
        part = Fraction(int(x * scale)) / scale
        out.append(float(part))
        x -= part
    return (*out, float(x))


class _Body:
    """The text of one function in the making."""

    def __init__(self, name: str, element: str, lanes: int | None, has_fma: bool) -> None:
        from .math import MathEmitter

        self.lines: list[str] = []
        self.element = element
        self.lanes = lanes
        self.has_fma = has_fma
        self.math: MathEmitter = MathEmitter(self.put, "double", lanes, has_fma=has_fma)
        self.type = self._vector(element)
        self.doubles = self._vector("double")
        self.ints = self._vector("i64")
        self.bits = self._vector("i1")
        self.suffix = ("f32" if element == "float" else "f64") if lanes is None else self._lane_suffix()
        self.symbol = f"tw.{name}.{self.suffix}"

    def put(self, text: str) -> str:
        self.lines.append(f"  %v{len(self.lines)} = {text}")
        return f"%v{len(self.lines) - 1}"

    # ---- sin and cos ----
    def wave(self, name: str) -> Function:
        """r + n·π/2 = |x|, then the sine or cosine of r, by n, with a sign."""
        m = self.math
        x = self._wide("%x")
        size = m.call("fabs", x)
        fast, fast_n = self._moderate(size)
        (r, low), n, extra = self._beyond(size, fast, fast_n)
        if name == "cos":
            n = self.put(f"add {self.ints} {n}, {self._int(1)}")
        odd = self.put(f"trunc {self.ints} {n} to {self.bits}")
        value = self._select(odd, self._cosine(r, low), self._sine(r, low))
        sign = self.put(f"shl {self.ints} {n}, {self._int(62)}")
        if name == "sin":
            sign = self.put(f"xor {self.ints} {sign}, {self._bits_of(x)}")
        sign = self.put(f"and {self.ints} {sign}, {self._int(-(2**63))}")
        value = self._double_of(self.put(f"xor {self.ints} {self._bits_of(value)}, {sign}"))
        # NaN of an infinity, and of NaN.
        value = self._select(m.compare("olt", size, m.const(float("inf"))), value, m.sub(x, x))
        return self._function(("%x",), value, extra)

    def _moderate(self, size: str) -> tuple[Pair, str]:
        """The remainder and n for numbers up to _MODERATE."""
        m = self.math
        first, second, third, rest = _parts(_HALF_PI, _PART, 3)
        magic = m.const(1.5 * 2.0**52)
        shifted = m.add(m.mul(size, m.const(float(1 / _HALF_PI))), magic)
        n = m.sub(shifted, magic)
        a = m.sub(size, m.mul(n, m.const(first)))
        a, low = self._sum(a, m.negate(m.mul(n, m.const(second))))
        a, lower = self._sum(a, m.negate(m.mul(n, m.const(third))))
        low = m.sub(m.add(low, lower), m.mul(n, m.const(rest)))
        return self._sum(a, low), self._bits_of(shifted)

    def _beyond(self, size: str, fast: Pair, fast_n: str) -> tuple[Pair, str, set[str]]:
        """The same for all numbers: larger ones go lane by lane through integer arithmetic."""
        m = self.math
        large = m.compare("oge", size, m.const(_MODERATE))
        large = self.put(f"and {self.bits} {large}, {m.compare('olt', size, m.const(float('inf')))}")
        extra = {_reduction_text(), _table_text(), "declare i64 @llvm.fshl.i64(i64, i64, i64)"}
        some = large
        if self.lanes is not None:
            f = f"@llvm.vector.reduce.or.v{self.lanes}i1"
            extra.add(f"declare i1 {f}({self.bits})")
            some = self.put(f"call i1 {f}({self.bits} {large})")
        self.lines.append(f"  br i1 {some}, label %large, label %done")
        self.lines.append("large:")
        safe = self._select(large, size, m.const(2.0**20))
        columns = ["poison", "poison", "poison"]
        for lane in range(self.lanes or 1):
            one = safe
            if self.lanes is not None:
                one = self.put(f"extractelement {self.doubles} {safe}, i64 {lane}")
            result = self.put(f"call {{double, double, i64}} @tw.reduce(double {one})")
            for c, (kind, element) in enumerate(
                ((self.doubles, "double"), (self.doubles, "double"), (self.ints, "i64"))
            ):
                part = self.put(f"extractvalue {{double, double, i64}} {result}, {c}")
                if self.lanes is None:
                    columns[c] = part
                else:
                    columns[c] = self.put(f"insertelement {kind} {columns[c]}, {element} {part}, i64 {lane}")
        high, low = (self._select(large, c, f) for c, f in zip(columns[:2], fast, strict=True))
        n = self.put(f"select {self.bits} {large}, {self.ints} {columns[2]}, {self.ints} {fast_n}")
        self.lines.append("  br label %done")
        self.lines.append("done:")
        out = [
            self.put(f"phi {kind} [{near}, %entry], [{far}, %large]")
            for kind, near, far in (
                (self.doubles, fast[0], high), (self.doubles, fast[1], low), (self.ints, fast_n, n)
            )
        ]  # fmt: skip
        return (out[0], out[1]), out[2], extra

    def _sine(self, r: str, low: str) -> str:
        """r + (r³·P(r²) + low·(1 - r²/2)), the small terms first."""
        m = self.math
        square = m.mul(r, r)
        tail = m.mul(m.mul(r, square), m.polynomial(_SIN, square))
        slope = m.sub(m.const(1.0), m.mul(square, m.const(0.5)))
        return m.add(r, m.add(tail, m.mul(low, slope)))

    def _cosine(self, r: str, low: str) -> str:
        """1 - r²/2 + (r⁴·P(r²) - r·low), with what 1 - r²/2 was rounded by."""
        m = self.math
        square = m.mul(r, r)
        half = m.mul(square, m.const(0.5))
        whole = m.sub(m.const(1.0), half)
        lost = m.sub(m.sub(m.const(1.0), whole), half)
        tail = m.sub(m.mul(m.mul(square, square), m.polynomial(_COS, square)), m.mul(r, low))
        return m.add(whole, m.add(lost, tail))

    # ---- pow ----
    def power(self) -> Function:
        """e^(y·log|x|) with the cases of C's pow: its sign, 1 for y = 0 or x = 1, NaN for a root of a
        negative number.
        """
        m = self.math
        x, y = self._wide("%x"), self._wide("%y")
        size, y_size = m.call("fabs", x), m.call("fabs", y)
        zero, one, inf = m.const(0.0), m.const(1.0), m.const(float("inf"))
        value = self._power_of_float(size, y) if self.element == "float" else self._power_of_double(size, y)
        whole = self._is_whole(y_size)
        half_whole = self._is_whole(m.mul(y_size, m.const(0.5)))
        odd = self.put(f"xor {self.bits} {half_whole}, {self._bit(True)}")
        odd = self.put(f"and {self.bits} {whole}, {odd}")
        negative = self.put(f"icmp slt {self.ints} {self._bits_of(x)}, {self._int(0)}")
        flips = self.put(f"and {self.bits} {odd}, {negative}")
        value = self._select(flips, m.negate(value), value)
        below = m.compare("olt", x, zero)
        finite = m.compare("one", size, inf)
        fraction = self.put(f"xor {self.bits} {whole}, {self._bit(True)}")
        wrong = self.put(f"and {self.bits} {below}, {finite}")
        wrong = self.put(f"and {self.bits} {wrong}, {fraction}")
        value = self._select(wrong, m.const(float("nan")), value)
        unit = m.compare("oeq", size, one)
        unit = self.put(f"and {self.bits} {unit}, {m.compare('oeq', y_size, inf)}")
        ones = self.put(f"or {self.bits} {unit}, {m.compare('oeq', x, one)}")
        ones = self.put(f"or {self.bits} {ones}, {m.compare('oeq', y, zero)}")
        return self._function(("%x", "%y"), self._select(ones, one, value), set())

    def _power_of_float(self, size: str, y: str) -> str:
        # Beyond floats but within doubles both ways: rounding to float does the rest.
        return self.math.exp(self.math.mul(y, self.math.log(size)))

    def _power_of_double(self, size: str, y: str) -> str:
        m = self.math
        high, low = self._log(size)
        # A larger exponent gives 0, 1 or infinity all the same, and its product overflows.
        y = m.clamp(y, -(2.0**70), 2.0**70)
        t, low_t = self._product(y, high)
        low_t = m.add(low_t, m.mul(y, low))
        within = m.compare("olt", m.call("fabs", t), m.const(2000.0))
        return m.exp(t, self._select(within, low_t, m.const(0.0)))

    def _log(self, x: str) -> Pair:
        """log(x) within 2^-63: e·ln2 + 2·atanh(s) with s = (m - 1)/(m + 1), of x = 2^e·m."""
        m = self.math
        exponent, mantissa = m.split(x)
        one = m.const(1.0)
        f = m.sub(mantissa, one)
        d, d_low = self._sum(mantissa, one)
        s = m.div(f, d)
        p, p_low = self._product(s, d)
        rest = m.sub(m.sub(m.sub(f, p), p_low), m.mul(s, d_low))
        s_low = m.div(rest, d)
        z, z_low = self._product(s, s)
        z_low = m.add(z_low, m.mul(m.mul(s, s_low), m.const(2.0)))
        third = 1 / 3
        u, u_low = self._product(z, m.const(third))
        u_low = m.add(u_low, m.mul(z, m.const(float(Fraction(1, 3) - Fraction(third)))))
        u_low = m.add(u_low, m.mul(z_low, m.const(third)))
        u, more = self._sum(u, m.mul(m.mul(z, z), m.polynomial(_ATANH, z)))
        v, v_low = self._sum(one, u)
        v_low = m.add(v_low, m.add(more, u_low))
        twice, twice_low = m.add(s, s), m.add(s_low, s_low)
        a, a_low = self._product(twice, v)
        a_low = m.add(a_low, m.add(m.mul(twice, v_low), m.mul(twice_low, v)))
        t = m.tables
        high, low = self._sum(m.mul(exponent, m.const(t.ln2_high)), a)
        low = m.add(low, m.add(a_low, m.mul(exponent, m.const(t.ln2_low))))
        high, low = self._sum(high, low)
        # -inf of 0; infinity and NaN of themselves.
        edge = m.compare("ueq", x, m.const(float("inf")))
        nothing = m.compare("oeq", x, m.const(0.0))
        high = self._select(nothing, m.const(float("-inf")), self._select(edge, x, high))
        return high, low

    def _is_whole(self, size: str) -> str:
        """Whether a number of no sign is an integer; infinity is an even one."""
        m = self.math
        magic = m.const(2.0**52)
        near = m.sub(m.add(size, magic), magic)
        large = m.compare("oge", size, magic)
        return self.put(f"or {self.bits} {large}, {m.compare('oeq', near, size)}")

    # ---- pairs ----
    def _sum(self, a: str, b: str) -> Pair:
        """a + b exactly (Knuth)."""
        m = self.math
        s = m.add(a, b)
        t = m.sub(s, a)
        return s, m.add(m.sub(a, m.sub(s, t)), m.sub(b, t))

    def _product(self, a: str, b: str) -> Pair:
        """a · b exactly: by a fused multiply-add, or by halves (Dekker)."""
        m = self.math
        p = m.mul(a, b)
        if self.has_fma:
            return p, m.call("fma", a, b, m.negate(p))
        (x, x_low), (y, y_low) = self._halves(a), self._halves(b)
        e = m.sub(m.mul(x, y), p)
        e = m.add(m.add(e, m.mul(x, y_low)), m.mul(x_low, y))
        return p, m.add(e, m.mul(x_low, y_low))

    def _halves(self, a: str) -> Pair:
        m = self.math
        c = m.mul(a, m.const(2.0**27 + 1))
        high = m.sub(c, m.sub(c, a))
        return high, m.sub(a, high)

    # ---- text ----
    def _wide(self, name: str) -> str:
        return name if self.element == "double" else self.put(f"fpext {self.type} {name} to {self.doubles}")

    def _function(self, arguments: tuple[str, ...], value: str, extra: set[str]) -> Function:
        if self.element == "float":
            value = self.put(f"fptrunc {self.doubles} {value} to {self.type}")
        given = ", ".join(f"{self.type} {a}" for a in arguments)
        head = f"define internal {self.type} @{self.symbol}({given}) nounwind {{\nentry:"
        text = "\n".join([head, *self.lines, f"  ret {self.type} {value}", "}"])
        return Function(self.symbol, frozenset({text, *extra, *self.math.declarations}))

    def _select(self, bit: str, a: str, b: str) -> str:
        return self.put(f"select {self.bits} {bit}, {self.doubles} {a}, {self.doubles} {b}")

    def _bits_of(self, x: str) -> str:
        return self.put(f"bitcast {self.doubles} {x} to {self.ints}")

    def _double_of(self, x: str) -> str:
        return self.put(f"bitcast {self.ints} {x} to {self.doubles}")

    def _int(self, value: int) -> str:
        return str(value) if self.lanes is None else f"splat (i64 {value})"

    def _bit(self, value: bool) -> str:
        text = "true" if value else "false"
        return text if self.lanes is None else f"splat (i1 {text})"

    def _vector(self, element: str) -> str:
        return element if self.lanes is None else f"<{self.lanes} x {element}>"

    def _lane_suffix(self) -> str:
        return f"v{self.lanes}f{32 if self.element == 'float' else 64}"


# ---- numbers beyond _MODERATE ----
_WORDS = 20


@lru_cache(maxsize=1)
def _table_text() -> str:
    """2/π behind 64 zero bits, in words of 64 bits, the highest first."""
    bits = 64 * (_WORDS - 1)
    digits = int(2 / _pi(bits + 16) * Fraction(2) ** bits)
    words = [0] + [digits >> (64 * n) & (2**64 - 1) for n in reversed(range(_WORDS - 1))]
    return f"@tw.table = internal unnamed_addr constant [{_WORDS} x i64] [{_listed(words)}]"


def _listed(words: list[int]) -> str:
    return ", ".join(f"i64 {w - 2**64 if w >> 63 else w}" for w in words)


@lru_cache(maxsize=1)
def _reduction_text() -> str:
    """x = (n + f)·π/2 with |f| ≤ 1/2, of 2^19 ≤ x < inf, after Payne and Hanek: r = f·π/2
    as a pair, and n.

    x is m·2^k with an integer m. The bits of 2/π above 2^(2-k) give multiples of 4, which n may lack; the
    next 192 bits W give m·W mod 2^192, of which the upper 2 bits are n and the rest the fraction, to
    2^-126.
    """
    c = int(_HALF_PI * 2**127)
    lines = f"""\
define internal {{double, double, i64}} @tw.reduce(double %x) nounwind {{
  %bits = bitcast double %x to i64
  %digits = and i64 %bits, {2**52 - 1}
  %m = or i64 %digits, {2**52}
  %e = lshr i64 %bits, 52
  %at = sub i64 %e, 1013
  %word = lshr i64 %at, 6
  %shift = and i64 %at, 63
  %p0 = getelementptr i64, ptr @tw.table, i64 %word
  %p1 = getelementptr i64, ptr %p0, i64 1
  %p2 = getelementptr i64, ptr %p0, i64 2
  %p3 = getelementptr i64, ptr %p0, i64 3
  %t0 = load i64, ptr %p0, align 8
  %t1 = load i64, ptr %p1, align 8
  %t2 = load i64, ptr %p2, align 8
  %t3 = load i64, ptr %p3, align 8
  %w0 = call i64 @llvm.fshl.i64(i64 %t0, i64 %t1, i64 %shift)
  %w1 = call i64 @llvm.fshl.i64(i64 %t1, i64 %t2, i64 %shift)
  %w2 = call i64 @llvm.fshl.i64(i64 %t2, i64 %t3, i64 %shift)
  %wide = zext i64 %m to i128
  %wide1 = zext i64 %w1 to i128
  %wide2 = zext i64 %w2 to i128
  %low = mul i128 %wide, %wide2
  %carried = lshr i128 %low, 64
  %middle = mul i128 %wide, %wide1
  %sum = add i128 %middle, %carried
  %f0 = trunc i128 %sum to i64
  %over = lshr i128 %sum, 64
  %carry = trunc i128 %over to i64
  %high = mul i64 %m, %w0
  %f1 = add i64 %high, %carry
  %n = lshr i64 %f1, 62
  %g1 = call i64 @llvm.fshl.i64(i64 %f1, i64 %f0, i64 2)
  %g0 = shl i64 %f0, 2
  %negative = icmp slt i64 %g1, 0
  %up = zext i1 %negative to i64
  %nearest = add i64 %n, %up
  %h1 = zext i64 %g1 to i128
  %h1s = shl i128 %h1, 64
  %h0 = zext i64 %g0 to i128
  %g = or i128 %h1s, %h0
  %minus = sub i128 0, %g
  %size = select i1 %negative, i128 %minus, i128 %g
  %a0t = trunc i128 %size to i64
  %a1s = lshr i128 %size, 64
  %a0 = zext i64 %a0t to i128
  %c11 = mul i128 %a1s, {c >> 64}
  %c10 = mul i128 %a1s, {c & (2**64 - 1)}
  %c01 = mul i128 %a0, {c >> 64}
  %c10h = lshr i128 %c10, 64
  %c01h = lshr i128 %c01, 64
  %s0 = add i128 %c11, %c10h
  %r = add i128 %s0, %c01h
  %r1w = lshr i128 %r, 85
  %r1 = trunc i128 %r1w to i64
  %r2w = lshr i128 %r, 42
  %r2t = trunc i128 %r2w to i64
  %r2 = and i64 %r2t, {2**43 - 1}
  %r3t = trunc i128 %r to i64
  %r3 = and i64 %r3t, {2**42 - 1}
  %f1d = sitofp i64 %r1 to double
  %f2d = sitofp i64 %r2 to double
  %f3d = sitofp i64 %r3 to double
  %d1 = fmul double %f1d, {_hex(2.0**-42)}
  %d2 = fmul double %f2d, {_hex(2.0**-85)}
  %d3 = fmul double %f3d, {_hex(2.0**-127)}
  %q = fadd double %d1, %d2
  %q1 = fsub double %d1, %q
  %q2 = fadd double %q1, %d2
  %q3 = fadd double %q2, %d3
  %rh = fadd double %q, %q3
  %l1 = fsub double %q, %rh
  %rl = fadd double %l1, %q3
  %rhn = fneg double %rh
  %rln = fneg double %rl
  %rhs = select i1 %negative, double %rhn, double %rh
  %rls = select i1 %negative, double %rln, double %rl
  %o0 = insertvalue {{double, double, i64}} poison, double %rhs, 0
  %o1 = insertvalue {{double, double, i64}} %o0, double %rls, 1
  %o2 = insertvalue {{double, double, i64}} %o1, i64 %nearest, 2
  ret {{double, double, i64}} %o2
}}"""
    return lines


def _hex(value: float) -> str:
    return "0x" + struct.pack(">d", value).hex().upper()
