"""The functions of the IR in float64, and how far a kernel may be from them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .inputs import Array

#: The stated error of each function, in units of eps·|result|; what is not here is exact. Code generators
#: state less.
ULPS: dict[str, float] = {
    "exp": 2,
    "log": 2,
    "sqrt": 1,
    "rsqrt": 2,
    "tanh": 2,
    "sigmoid": 3,
    "erf": 2,
    "gelu": 6,
    "sin": 4,
    "cos": 4,
    "pow": 16,
}

#: Functions with a slope of at most 1 that are not monotone; their error is stated in units of eps.
LIPSCHITZ = frozenset({"sin", "cos"})


def _erf(x: Array) -> Array:
    # NumPy has none; the C library's is within an ulp of float64.
    return np.fromiter(map(math.erf, x.ravel().tolist()), np.float64, x.size).reshape(x.shape)


def _gelu(x: Array) -> Array:
    """x·Φ(x), within 3 ulp: with a = |x| it is max(x, 0) - a·erfc(a/√2)/2."""
    a = np.abs(x).astype(np.float64)
    with np.errstate(all="ignore"):
        below = np.where(a < _GELU_SERIES, _gelu_near(a), _gelu_far(np.minimum(a, _GELU_END)))
        return np.where(np.isposinf(x), x, np.where(x < 0, -0.0, x) - below)


def _gelu_near(a: Array) -> Array:
    z = a * _HALF_ROOT
    # What the product with √½ has lost, which erfc would magnify z² times: a and √½ in halves (Dekker).
    top = _top_half(a)
    low = a - top
    lost = (top * _ROOT_TOP - z) + top * _ROOT_REST + low * _ROOT_TOP + low * _ROOT_REST + a * _ROOT_BEYOND
    q = np.fromiter(map(math.erfc, z.ravel().tolist()), np.float64, z.size).reshape(z.shape)
    return a * ((q - lost * (2 / math.sqrt(math.pi)) * np.exp(-z * z)) / 2)


def _gelu_far(a: Array) -> Array:
    """The asymptotic series of Mills' ratio; e^(-a²/2) as a product, so that one rounding makes it
    denormal."""
    top = _top_half(a)
    root = np.exp(-top * top / 4)
    y = 1 / (a * a)
    series = np.polynomial.polynomial.polyval(y, [1, -1, 3, -15, 105, -945, 10395, -135135])
    rest = np.exp(-(a - top) * (a + top) / 2)
    return np.asarray(root / math.sqrt(2 * math.pi) * series * rest * root)


def _top_half(x: Array) -> Array:
    c = x * (2.0**27 + 1)
    return np.asarray(c - (c - x))


#: Where gelu is smallest.
GELU_LOWEST = -0.7517915246935645
#: gelu is a series from here on; -0 from the negative of _GELU_END down.
_GELU_SERIES, _GELU_END = 30.0, 39.0
_HALF_ROOT = math.sqrt(0.5)
_ROOT_TOP = float.fromhex("0x1.6a09e6p-1")
_ROOT_REST = _HALF_ROOT - _ROOT_TOP
#: √½ less its double.
_ROOT_BEYOND = float.fromhex("-0x1.bdd3413b26456p-55")


def _sigmoid(x: Array) -> Array:
    # For large negative x, 1 + exp(-x) would overflow and 1 + tanh cancel.
    return np.asarray(np.exp(-np.logaddexp(0.0, -x)))


def _rsqrt(x: Array) -> Array:
    return np.asarray(1.0 / np.sqrt(x))


def power(a: Array, b: Array) -> Array:
    """a to the power of b by C's rules; NumPy takes the root for an exponent that is 0.5 throughout, and so
    gives -0 of -0 and NaN of -infinity."""
    r = np.power(a, b)
    return np.where(b == 0.5, np.where(a == -np.inf, np.asarray(np.inf, r.dtype), r + r.dtype.type(0)), r)


FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": _rsqrt,
    "tanh": np.tanh,
    "sigmoid": _sigmoid,
    "erf": _erf,
    "gelu": _gelu,
    "sin": np.sin,
    "cos": np.cos,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
}
