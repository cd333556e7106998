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
    "sin": 4,
    "cos": 4,
    "pow": 16,
}

#: Functions with a slope of at most 1 that are not monotone; their error is stated in units of eps.
LIPSCHITZ = frozenset({"sin", "cos"})


def _erf(x: Array) -> Array:
    # NumPy has none; the C library's is within an ulp of float64.
    return np.fromiter(map(math.erf, x.ravel().tolist()), np.float64, x.size).reshape(x.shape)


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
    "sin": np.sin,
    "cos": np.cos,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
}
