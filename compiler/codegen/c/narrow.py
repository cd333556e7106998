"""Conversions of the 16-bit floats, in integers: round to nearest even, subnormals, infinities, NaN.

float16 is IEEE 754 binary16; bfloat16 is the upper half of a binary32.
"""

from __future__ import annotations

_OF_F16 = """\
static inline float tw_f32_of_f16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, a = h & 0x7fffu;
    float x = (float)(int32_t)a * 0x1p-24f; /* a subnormal one */
    if (a >= 0x0400u) {
        uint32_t bits = (a << 13) + (a >= 0x7c00u ? 0x70000000u : 0x38000000u);
        memcpy(&x, &bits, sizeof x);
    }
    uint32_t out;
    memcpy(&out, &x, sizeof out);
    out |= sign;
    memcpy(&x, &out, sizeof x);
    return x;
}
"""

_TO_F16 = """\
static inline uint16_t tw_f16_of_f32(float x)
{
    uint32_t bits, small;
    memcpy(&bits, &x, sizeof bits);
    uint32_t sign = bits >> 16 & 0x8000u, a = bits & 0x7fffffffu;
    if (a > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | (a >> 13 & 0x1ffu)); /* NaN */
    if (a >= 0x477ff000u)
        return (uint16_t)(sign | 0x7c00u); /* 65520 and more: infinity */
    if (a < 0x38800000u) {
        /* Below 2^-14 the sum with 0.5 is rounded to a multiple of 2^-24, as a subnormal is. */
        float y;
        memcpy(&y, &a, sizeof y);
        y += 0.5f;
        memcpy(&small, &y, sizeof small);
        return (uint16_t)(sign | (small - 0x3f000000u));
    }
    return (uint16_t)(sign | (a - 0x38000000u + 0xfffu + (a >> 13 & 1u)) >> 13);
}
"""

_ODD = """\
/* Rounded to odd: of the two floats around what is none, the one with its last bit set. A second rounding is
   then as if it were the only one. */
static inline float tw_odd_f64(double x)
{
    float y = (float)x;
    uint32_t bits;
    memcpy(&bits, &y, sizeof bits);
    if ((double)y != x)
        bits = (bits - (uint32_t)(fabs((double)y) > fabs(x))) | 1u;
    memcpy(&y, &bits, sizeof y);
    return y;
}
"""


def _odd_integer(kind: str, size: str) -> str:
    name = f"tw_odd_{kind[0]}64"
    return f"""\
static inline float {name}({kind} x)
{{
    uint64_t head = ((uint64_t)x & ~UINT64_C(0xfff)) | (uint64_t)(((uint64_t)x & 0xfffu) != 0) << 11;
    return tw_odd_f64((double)({size} < UINT64_C(0x20000000000000) ? x : ({kind})head));
}}
"""


_OF_BF16 = """\
static inline float tw_f32_of_bf16(uint16_t h)
{
    uint32_t bits = (uint32_t)h << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
"""

_TO_BF16 = """\
static inline uint16_t tw_bf16_of_f32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    return (uint16_t)(x != x ? (bits >> 16 & 0x8000u) | 0x7fc0u : rounded);
}
"""


def _round(kind: str) -> str:
    return f"""\
static inline float tw_round_{kind}(float x)
{{
    return tw_f32_of_{kind}(tw_{kind}_of_f32(x));
}}
"""


#: Name without its prefix -> (what it calls, text).
NARROW: dict[str, tuple[tuple[str, ...], str]] = {
    "f32_of_f16": ((), _OF_F16),
    "f16_of_f32": ((), _TO_F16),
    "odd_f64": ((), _ODD),
    "odd_i64": (("odd_f64",), _odd_integer("int64_t", "(uint64_t)x + UINT64_C(0x10000000000000)")),
    "odd_u64": (("odd_f64",), _odd_integer("uint64_t", "x")),
    "round_f16": (("f32_of_f16", "f16_of_f32"), _round("f16")),
    "f32_of_bf16": ((), _OF_BF16),
    "bf16_of_f32": ((), _TO_BF16),
    "round_bf16": (("f32_of_bf16", "bf16_of_f32"), _round("bf16")),
}
