"""The remainder of a large number by π/2, in integer arithmetic."""

from __future__ import annotations

import struct
from fractions import Fraction
from functools import lru_cache

_WORDS = 20


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


HALF_PI = _pi(300) / 2


@lru_cache(maxsize=1)
def table_text() -> str:
    """2/π behind 64 zero bits, in words of 64 bits, the highest first."""
    bits = 64 * (_WORDS - 1)
    digits = int(2 / _pi(bits + 16) * Fraction(2) ** bits)
    words = [0] + [digits >> (64 * n) & (2**64 - 1) for n in reversed(range(_WORDS - 1))]
    return f"@tw.table = internal unnamed_addr constant [{_WORDS} x i64] [{_listed(words)}]"


def _listed(words: list[int]) -> str:
    return ", ".join(f"i64 {w - 2**64 if w >> 63 else w}" for w in words)


@lru_cache(maxsize=1)
def reduction_text() -> str:
    """x = (n + f)·π/2 with |f| ≤ 1/2, of 2^19 ≤ x < inf, after Payne and Hanek: r = f·π/2
    as a pair, and n.

    x is m·2^k with an integer m. The bits of 2/π above 2^(2-k) give multiples of 4, which n may lack; the
    next 192 bits W give m·W mod 2^192, of which the upper 2 bits are n and the rest the fraction, to
    2^-126.
    """
    c = int(HALF_PI * 2**127)
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
