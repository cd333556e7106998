"""gelu(x) = x·Φ(x), where Φ is the distribution function of the standard normal distribution.

With a = |x| it is max(x, 0) - a·Φ(-a) on both sides, and Φ(-a) = e^(-a²/2)·R(a). R falls from 1/2 like 1/a:
in t = 1/(1 + a/4) it is a polynomial. The sum 1 + erf(x/√2) would lose every digit of a negative x.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .math_tables import hex_numbers

if TYPE_CHECKING:
    from .math import MathEmitter

_FLOAT_TAIL = hex_numbers(
    "0x1.988f9b19c409ap-4 0x1.97a3d71b65a46p-4 0x1.864c545cf7b56p-4 0x1.2b1092408554ep-4 "
    "0x1.57712bbeab933p-4 0x1.22a90d98aa243p-6 0x1.7257691124430p-6 0x1.c9cefd3ca6699p-5 "
    "-0x1.085a8b9b76fd6p-4 0x1.14c5afa5c2dd6p-6"
)
"""R/t in t for a ≤ 14.5: within 2^-26.8."""

_FLOAT_POWER = hex_numbers(
    "0x1.0000000266773p0 0x1.62e430c932aa5p-1 0x1.ebfbdad45b5d4p-3 0x1.c6aed2f885639p-5 "
    "0x1.3b2dbf205b0c9p-7 0x1.5f464ddb144e4p-10 0x1.41d26ab8a3103p-13"
)
"""2^f on |f| ≤ 1/2: within 2^-29."""

_FLOAT_END = 14.5
"""gelu(x) rounds to -0 from the negative of this down."""

_DOUBLE_TAIL = hex_numbers(
    "0x1.9884533d6b977p-4 0x1.98845331892f9p-4 0x1.7efc0f9bc8dbfp-4 0x1.4beb62b338d61p-4 "
    "0x1.041e199e9e895p-4 0x1.621c2c7a75a29p-5 0x1.81c2e5ef168a7p-6 0x1.9cc5aab9595b8p-8 "
    "0x1.32dde06e8ce28p-10 -0x1.718621841e58cp-6 0x1.5a138fc1482bap-5 -0x1.c1584dfbf38ecp-4 "
    "0x1.8a9a18f85cea5p-3 -0x1.d3776a9588262p-3 0x1.26b969a6f1497p-3 0x1.a54cc766dd77ep-4 "
    "-0x1.924d18e817b4cp-2 0x1.06e0c4cb291acp-1 -0x1.9fe15d33d188ap-2 0x1.aee8b788264f9p-3 "
    "-0x1.20b4fc285dfb7p-4 0x1.ca083dc0c1d09p-7 -0x1.48e172a8a070ep-10"
)
"""R/t in t for a ≤ 39: within 2^-55.4."""

_DOUBLE_END = 39.0

_DENSITY = 1 / math.sqrt(2 * math.pi)


def gelu_of_float(m: MathEmitter, wide: MathEmitter, x: str) -> str:
    """x·Φ(x) of floats, computed in doubles (`wide`), since a² alone has twice their digits."""
    one, quarter = m.const(1.0), m.const(0.25)
    size = m.at_most(m.call("fabs", x), _FLOAT_END)
    t = m.div(one, m.fma(size, quarter, one))
    a, guess = m.widened(size), m.widened(t)
    # The quotient of floats, made one of doubles by a step of Newton's.
    d = wide.fma(a, wide.const(0.25), wide.const(1.0))
    wrong = wide.fma(wide.negate(guess), d, wide.const(1.0))
    exact = wide.fma(guess, wrong, guess)
    square, scale = wide.mul(a, a), wide.const(-0.5 * math.log2(math.e))
    shifted = wide.fma(square, scale, wide.const(wide.tables.round_magic))
    n = wide.sub(shifted, wide.const(wide.tables.round_magic))
    power = wide.polynomial(_FLOAT_POWER, wide.fma(square, scale, wide.negate(n)))
    tail = wide.mul(wide.mul(a, exact), wide.polynomial(_FLOAT_TAIL, exact))
    below = wide.times_power_of_two(wide.mul(tail, power), shifted)
    return m.sub(_at_least_minus_zero(m, x), m.narrowed(below))


def gelu_of_double(m: MathEmitter, x: str) -> str:
    """x·Φ(x) of doubles; a² as a pair, and the quotient corrected where there is a fused multiply-add."""
    one, half = m.const(1.0), m.const(-0.5)
    a = m.at_most(m.call("fabs", x), _DOUBLE_END)
    square, square_low = m.product(a, a)
    shifted, r = m.reduce(m.mul(square, half), 2 * m.tables.bias)
    power = m.exp_reduced(m.fma(square_low, half, r))
    d = m.fma(a, m.const(0.25), one)
    t = m.div(one, d)
    ratio = m.mul(t, m.polynomial(_DOUBLE_TAIL, t))
    # 1 - t·(1 + a/4) tells how far t is off, and dR/da = a·R - 1/√(2π) what that does.
    p, p_low = m.product(m.mul(a, m.const(0.25)), t)
    wrong = m.sub(m.sub(m.sub(one, t), p), p_low)
    slope = m.fma(m.negate(a), ratio, m.const(_DENSITY))
    ratio = m.fma(m.mul(slope, m.mul(d, m.const(4.0))), wrong, ratio)
    # Scaled first: what a denormal number has lost vanishes in the product with a small one.
    scaled = m.negate(m.scaled(a, shifted))
    return m.fma(scaled, m.mul(ratio, power), _at_least_minus_zero(m, x))


def _at_least_minus_zero(m: MathEmitter, x: str) -> str:
    """x, or -0 below: so that the result has the sign of x where it rounds to 0."""
    zero = m.const(-0.0)
    return m.select(m.compare("olt", x, zero), zero, x)
