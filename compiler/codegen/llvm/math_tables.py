"""Polynomials and constants of the elementary functions, for float and double.

The coefficients were fitted for this file: weighted least squares at Chebyshev nodes, reweighted towards
the minimax (Lawson), in 50 digits; then rounded to the format one at a time from the lowest power, the rest
fitted anew after each. "Within 2^-n" is the largest relative error of the function that the rounded
polynomial gives, in exact arithmetic. Lowest power first.
"""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tables:
    """Everything that differs between the two formats."""

    bits: int
    mantissa: int  # explicit bits
    bias: int
    exp_low: float  # exp rounds to 0 from here down
    exp_high: float  # exp is inf from here up
    ln2_high: float  # so short that its product with an exponent is exact
    ln2_low: float
    exp: tuple[float, ...]
    log: tuple[float, ...]
    log_from: float  # the mantissa's range starts here and ends at twice this
    erf_small: tuple[float, ...]
    erf_large: tuple[float, ...]
    erf_centre: float
    erf_one: float  # erf rounds to 1 from here up
    tanh: tuple[float, ...]
    tanh_one: float  # tanh rounds to 1 from here up

    @property
    def round_magic(self) -> float:
        """Added to a small number it leaves the integer in the low bits: 1.5·2^mantissa."""
        return 1.5 * 2.0**self.mantissa


def hex_numbers(words: str) -> tuple[float, ...]:
    """Numbers as float.hex() writes them."""
    return tuple(map(float.fromhex, words.split()))


_FLOAT_EXP = hex_numbers("0x1.fffffcp-2 0x1.55548ap-3 0x1.55584cp-5 0x1.123f5ap-7 0x1.6adadp-10")
"""(e^r - 1 - r) / r² on |r| ≤ 0.347: e^r within 2^-28.2."""

_FLOAT_LOG = hex_numbers(
    "0x1.555508p-2 -0x1.fffef2p-3 0x1.99cf90p-3 -0x1.559d7ap-3 "
    "0x1.1ee034p-3 -0x1.f31a7ap-4 0x1.1e3c6ap-3 -0x1.07f128p-3"
)
"""(log(1+f) - f + f²/2) / f³ on -1/3 ≤ f ≤ 1/3: log(1+f) within 2^-27.6."""

_FLOAT_ERF_SMALL = hex_numbers(
    "0x1.06eba8p-3 -0x1.81273ep-2 0x1.ce2cecp-4 -0x1.b7f7f0p-6 0x1.53fbd8p-8 -0x1.a3ac5ep-11 0x1.489c72p-14"
)
"""(erf(x)/x - 1) in x² on |x| ≤ 1: erf(x) within 2^-29.4."""

_FLOAT_ERF_LARGE = hex_numbers(
    "0x1.6782bap-12 0x1.208896p0 0x1.46bbf2p-1 0x1.a64c9ap-4 -0x1.65bf6cp-6 0x1.8243cep-9 -0x1.86b82ap-13"
)
"""-log(erfc(a)) on 1 ≤ a ≤ 4: erf(a) within 2^-29.7."""

_FLOAT_TANH = hex_numbers("-0x1.55554cp-2 0x1.110d6cp-3 -0x1.b93278p-5 0x1.598734p-6 -0x1.9cb23cp-8")
"""(tanh(x)/x - 1) / x² in x² on |x| ≤ 0.55: tanh(x) within 2^-29.8."""

_DOUBLE_EXP = hex_numbers(
    "0x1p-1 0x1.5555555555559p-3 0x1.5555555555557p-5 0x1.111111110f650p-7 "
    "0x1.6c16c16c15697p-10 0x1.a01a01b00814ap-13 0x1.a01a01ab94d89p-16 0x1.71ddf7ffc5e89p-19 "
    "0x1.27e4cfd3eb8eap-22 0x1.af5f4af9d74cap-26 0x1.1f86854666563p-29"
)
"""(e^r - 1 - r) / r² on |r| ≤ 0.3466: e^r within 2^-61."""

_DOUBLE_LOG = hex_numbers(
    "0x1.5555555555593p-1 0x1.999999997f9dfp-2 0x1.249249422b84fp-2 0x1.c71c51d71c8c6p-3 "
    "0x1.746649c3b3214p-3 0x1.39a094f0bc694p-3 0x1.2f1179a301cf0p-3"
)
"""(2·atanh(s)/s - 2) / s² in s² on |s| ≤ 0.1717: log(1+f), where s = f/(2+f), within 2^-60."""

_DOUBLE_ERF_SMALL = hex_numbers(
    "0x1.06eba8214db68p-3 -0x1.812746b0379aap-2 0x1.ce2f21a040432p-4 -0x1.b82ce311ddee4p-6 "
    "0x1.565bccf60ff0bp-8 -0x1.c02dafd60f710p-11 0x1.f9a2b20910e14p-14 -0x1.f4c9d5c46130cp-17 "
    "0x1.b97b9cd765592p-20 -0x1.5bef5761f5c18p-23 0x1.d681f1f7defc8p-27 -0x1.aa02a9086301fp-31"
)
"""(erf(x)/x - 1) in x² on |x| ≤ 1: erf(x) within 2^-55.9."""

_DOUBLE_ERF_LARGE = hex_numbers(
    "0x1.575b329b1f516p2 0x1.1ac3258a8dc2ep2 0x1.d8f5dece923a5p-1 0x1.0dc3b5fb0a35fp-6 "
    "-0x1.d406b37481736p-9 0x1.7ffcfb4ab3b39p-11 -0x1.1bc3a57de8ff1p-13 0x1.5b6570d6d5720p-16 "
    "-0x1.0604d3059468cp-19 -0x1.b54f0e85bc652p-23 0x1.73f41e73fac9bp-23 -0x1.f0848ca51f371p-25 "
    "0x1.df5547b5e75f4p-27 -0x1.5c8e05aff3a64p-29 0x1.2dba12777dc96p-32 0x1.720e193f7d7b4p-35 "
    "-0x1.480eb5e8f0db4p-35 0x1.6913d9ef0458dp-37 -0x1.2d828ae5e53abp-40"
)
"""-log(erfc(2+u)) on -1 ≤ u ≤ 4: erf(2+u) within 2^-58.8."""

_DOUBLE_TANH = hex_numbers(
    "-0x1.555555555554fp-2 0x1.111111111079bp-3 -0x1.ba1ba1b97dbb0p-5 0x1.664f48598a641p-6 "
    "-0x1.226e2f18fc532p-7 0x1.d6d29c6d98bc5p-9 -0x1.7d8fdf9a1002ap-10 0x1.3484171dc88b5p-11 "
    "-0x1.e9741beb4b4f2p-13 0x1.5d8124c63e8ccp-14 -0x1.473140449a0afp-16"
)
"""(tanh(x)/x - 1) / x² in x² on |x| ≤ 0.55: tanh(x) within 2^-60.6."""

TANH_SMALL = 0.55
"""The polynomials of tanh hold up to here."""

TABLES = {
    "float": Tables(
        bits=32,
        mantissa=23,
        bias=127,
        exp_low=-105.0,
        exp_high=89.0,
        ln2_high=float.fromhex("0x1.62e4p-1"),
        ln2_low=float.fromhex("0x1.7f7d1cf79abcap-20"),
        exp=_FLOAT_EXP,
        log=_FLOAT_LOG,
        log_from=2 / 3,
        erf_small=_FLOAT_ERF_SMALL,
        erf_large=_FLOAT_ERF_LARGE,
        erf_centre=0.0,
        erf_one=4.0,
        tanh=_FLOAT_TANH,
        tanh_one=10.0,
    ),
    "double": Tables(
        bits=64,
        mantissa=52,
        bias=1023,
        exp_low=-746.0,
        exp_high=710.0,
        ln2_high=float.fromhex("0x1.62e42fefap-1"),
        ln2_low=float.fromhex("0x1.cf79abc9e3b3ap-40"),
        exp=_DOUBLE_EXP,
        log=_DOUBLE_LOG,
        log_from=math.sqrt(0.5),
        erf_small=_DOUBLE_ERF_SMALL,
        erf_large=_DOUBLE_ERF_LARGE,
        erf_centre=2.0,
        erf_one=6.0,
        tanh=_DOUBLE_TANH,
        tanh_one=20.0,
    ),
}
"""By LLVM's name of the element type."""
