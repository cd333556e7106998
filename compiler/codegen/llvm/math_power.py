"""Powers with any exponent."""

from __future__ import annotations

from fractions import Fraction

from .math_body import Body, Function, Pair

_ATANH = tuple(1 / (2 * n + 1) for n in range(2, 13))
"""(atanh(s)/s - 1 - s²/3) / s⁴ in s²: on |s| ≤ 0.1716 it leaves out less than 2^-66 of atanh(s)."""


class Power(Body):
    """x^y."""

    def power(self) -> Function:
        """e^(y·log|x|) with the cases of C's pow: its sign, 1 for y = 0 or x = 1, NaN for a root of a
        negative number.
        """
        m = self.math
        x, y = self.wide("%x"), self.wide("%y")
        size, y_size = m.call("fabs", x), m.call("fabs", y)
        zero, one, inf = m.const(0.0), m.const(1.0), m.const(float("inf"))
        value = self._power_of_float(size, y) if self.element == "float" else self._power_of_double(size, y)
        whole = self._is_whole(y_size)
        half_whole = self._is_whole(m.mul(y_size, m.const(0.5)))
        odd = self.put(f"xor {self.bits} {half_whole}, {self.bit(True)}")
        odd = self.put(f"and {self.bits} {whole}, {odd}")
        negative = self.put(f"icmp slt {self.ints} {self.bits_of(x)}, {self.int(0)}")
        flips = self.put(f"and {self.bits} {odd}, {negative}")
        value = self.select(flips, m.negate(value), value)
        below = m.compare("olt", x, zero)
        finite = m.compare("one", size, inf)
        fraction = self.put(f"xor {self.bits} {whole}, {self.bit(True)}")
        wrong = self.put(f"and {self.bits} {below}, {finite}")
        wrong = self.put(f"and {self.bits} {wrong}, {fraction}")
        value = self.select(wrong, m.const(float("nan")), value)
        unit = m.compare("oeq", size, one)
        unit = self.put(f"and {self.bits} {unit}, {m.compare('oeq', y_size, inf)}")
        ones = self.put(f"or {self.bits} {unit}, {m.compare('oeq', x, one)}")
        ones = self.put(f"or {self.bits} {ones}, {m.compare('oeq', y, zero)}")
        return self.function(("%x", "%y"), self.select(ones, one, value), set())

    def _power_of_float(self, size: str, y: str) -> str:
        # Beyond floats but within doubles both ways: rounding to float does the rest.
        return self.math.exp(self.math.mul(y, self.math.log(size)))

    def _power_of_double(self, size: str, y: str) -> str:
        m = self.math
        high, low = self._log(size)
        # A larger exponent gives 0, 1 or infinity all the same, and its product overflows.
        y = m.clamp(y, -(2.0**70), 2.0**70)
        t, low_t = self.product(y, high)
        low_t = m.add(low_t, m.mul(y, low))
        within = m.compare("olt", m.call("fabs", t), m.const(2000.0))
        return m.exp(t, self.select(within, low_t, m.const(0.0)))

    def _log(self, x: str) -> Pair:
        """log(x) within 2^-63: e·ln2 + 2·atanh(s) with s = (m - 1)/(m + 1), of x = 2^e·m."""
        m = self.math
        exponent, mantissa = m.split(x)
        one = m.const(1.0)
        f = m.sub(mantissa, one)
        d, d_low = self.sum(mantissa, one)
        s = m.div(f, d)
        p, p_low = self.product(s, d)
        rest = m.sub(m.sub(m.sub(f, p), p_low), m.mul(s, d_low))
        s_low = m.div(rest, d)
        z, z_low = self.product(s, s)
        z_low = m.add(z_low, m.mul(m.mul(s, s_low), m.const(2.0)))
        third = 1 / 3
        u, u_low = self.product(z, m.const(third))
        u_low = m.add(u_low, m.mul(z, m.const(float(Fraction(1, 3) - Fraction(third)))))
        u_low = m.add(u_low, m.mul(z_low, m.const(third)))
        u, more = self.sum(u, m.mul(m.mul(z, z), m.polynomial(_ATANH, z)))
        v, v_low = self.sum(one, u)
        v_low = m.add(v_low, m.add(more, u_low))
        twice, twice_low = m.add(s, s), m.add(s_low, s_low)
        a, a_low = self.product(twice, v)
        a_low = m.add(a_low, m.add(m.mul(twice, v_low), m.mul(twice_low, v)))
        t = m.tables
        high, low = self.sum(m.mul(exponent, m.const(t.ln2_high)), a)
        low = m.add(low, m.add(a_low, m.mul(exponent, m.const(t.ln2_low))))
        high, low = self.sum(high, low)
        # -inf of 0; infinity and NaN of themselves.
        edge = m.compare("ueq", x, m.const(float("inf")))
        nothing = m.compare("oeq", x, m.const(0.0))
        high = self.select(nothing, m.const(float("-inf")), self.select(edge, x, high))
        return high, low

    def _is_whole(self, size: str) -> str:
        """Whether a number of no sign is an integer; infinity is an even one."""
        m = self.math
        magic = m.const(2.0**52)
        near = m.sub(m.add(size, magic), magic)
        large = m.compare("oge", size, magic)
        return self.put(f"or {self.bits} {large}, {m.compare('oeq', near, size)}")
