"""sin and cos."""

from __future__ import annotations

from fractions import Fraction
from math import factorial

from .math_body import Body, Function, Pair
from .math_reduction import HALF_PI, reduction_text, table_text

#: Up to here n · π/2 is exact with the upper parts of π/2: n has 20 bits, each of the parts 33.
_MODERATE = 8.0e5
_PART = 33

_SIN = tuple((-1.0) ** n / factorial(2 * n + 1) for n in range(1, 9))
"""(sin(r) - r) / r³ in r²: Taylor's series, which on |r| ≤ π/4 leaves out less than 2^-62 of sin(r)."""

_COS = tuple((-1.0) ** n / factorial(2 * n) for n in range(2, 10))
"""(cos(r) - 1 + r²/2) / r⁴ in r²: as above, less than 2^-63."""


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


class Wave(Body):
    """The sine or the cosine."""

    def wave(self, name: str) -> Function:
        """r + n·π/2 = |x|, then the sine or cosine of r, by n, with a sign."""
        m = self.math
        x = self.wide("%x")
        size = m.call("fabs", x)
        fast, fast_n = self._moderate(size)
        (r, low), n, extra = self._beyond(size, fast, fast_n)
        if name == "cos":
            n = self.put(f"add {self.ints} {n}, {self.int(1)}")
        odd = self.put(f"trunc {self.ints} {n} to {self.bits}")
        value = self.select(odd, self._cosine(r, low), self._sine(r, low))
        sign = self.put(f"shl {self.ints} {n}, {self.int(62)}")
        if name == "sin":
            sign = self.put(f"xor {self.ints} {sign}, {self.bits_of(x)}")
        sign = self.put(f"and {self.ints} {sign}, {self.int(-(2**63))}")
        value = self.double_of(self.put(f"xor {self.ints} {self.bits_of(value)}, {sign}"))
        # NaN of an infinity, and of NaN.
        value = self.select(m.compare("olt", size, m.const(float("inf"))), value, m.sub(x, x))
        return self.function(("%x",), value, extra)

    def _moderate(self, size: str) -> tuple[Pair, str]:
        """The remainder and n for numbers up to _MODERATE."""
        m = self.math
        first, second, third, rest = _parts(HALF_PI, _PART, 3)
        magic = m.const(1.5 * 2.0**52)
        shifted = m.add(m.mul(size, m.const(float(1 / HALF_PI))), magic)
        n = m.sub(shifted, magic)
        a = m.sub(size, m.mul(n, m.const(first)))
        a, low = self.sum(a, m.negate(m.mul(n, m.const(second))))
        a, lower = self.sum(a, m.negate(m.mul(n, m.const(third))))
        low = m.sub(m.add(low, lower), m.mul(n, m.const(rest)))
        return self.sum(a, low), self.bits_of(shifted)

    def _beyond(self, size: str, fast: Pair, fast_n: str) -> tuple[Pair, str, set[str]]:
        """The same for all numbers: larger ones go lane by lane through integer arithmetic."""
        m = self.math
        large = m.compare("oge", size, m.const(_MODERATE))
        large = self.put(f"and {self.bits} {large}, {m.compare('olt', size, m.const(float('inf')))}")
        extra = {reduction_text(), table_text(), "declare i64 @llvm.fshl.i64(i64, i64, i64)"}
        some = large
        if self.lanes is not None:
            f = f"@llvm.vector.reduce.or.v{self.lanes}i1"
            extra.add(f"declare i1 {f}({self.bits})")
            some = self.put(f"call i1 {f}({self.bits} {large})")
        self.lines.append(f"  br i1 {some}, label %large, label %done")
        self.lines.append("large:")
        safe = self.select(large, size, m.const(2.0**20))
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
        high, low = (self.select(large, c, f) for c, f in zip(columns[:2], fast, strict=True))
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
