"""Elementary functions of every float32 there is, as compiled kernels compute them: the largest error in
units of the last place of the exact result, and where it is. Two minutes for each function on one core.

    python tests/exhaustive/run.py [--target "llvm -mcpu=x86-64-v3"] [FUNCTION ...]

The exact result is NumPy's in float64. NumPy has no erf and no gelu; theirs is that of our own kernels in
float64, after these were compared with the C library's erf and erfc. It ends with 1 where an error is above
2 ulp, or where only one of the two is NaN, infinite, or of the other sign.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import tilewright as tw
from tilewright.compiler import te
from tilewright.compiler.interpret.functions import FUNCTIONS as REFERENCE

Array = np.ndarray[Any, Any]
Map = Callable[[Array], Array]

#: What is promised.
LIMIT = 2.0
#: Elements at once: they and what is made of them stay in the caches.
CHUNK = 1 << 17
NAMES = ("exp", "log", "tanh", "sigmoid", "erf", "gelu", "rsqrt", "sqrt", "sin", "cos")
#: Units of the last place of a double by which our kernels may differ from the C library's functions.
NEAR = 8.0


def sigmoid(x: Array) -> Array:
    """1 / (1 + e^-x) from the side where nothing cancels."""
    z = np.exp(-np.abs(x))
    return np.where(x < 0, z, 1.0) / (1 + z)


NUMPY: dict[str, Map] = {
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "sigmoid": sigmoid,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
}


@dataclass(frozen=True, slots=True)
class Worst:
    """The largest error, in units of the last place, and an argument that has it."""

    ulp: float
    at: float


def kernel(name: str, dtype: str, target: str) -> Map:
    """The function of CHUNK elements as it is compiled."""
    x = te.placeholder((CHUNK,), dtype, name="X")
    y = te.compute((CHUNK,), lambda i: getattr(te, name)(x[i]), name="Y")
    module = tw.build(te.create_prim_func([x, y], name=name), target=target)

    def call(values: Array) -> Array:
        out = np.full(CHUNK, np.nan, dtype)
        module(values, out)
        return out

    return call


def exact(name: str, target: str) -> Map:
    """The function in float64. Raises SystemExit where our own kernel is not what the C library says."""
    if name in NUMPY:
        return NUMPY[name]
    call = kernel(name, "float64", target)
    x = np.random.default_rng(0).uniform(-12, 12, CHUNK)
    x[:8] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-300]
    x[8:4096] *= 1e-4
    found = worst(call(x), REFERENCE[name](x), x)
    if found.ulp > NEAR:
        raise SystemExit(f"{name} of float64 is {found.ulp:.3g} ulp from the C library's at {found.at!r}")
    return call


def worst(got: Array, expected: Array, x: Array) -> Worst:
    """The largest distance of `got` from `expected`, in units of the last place of got's type; half of one
    where all are rounded right, to the bit."""
    bits = f"u{got.itemsize}"
    with np.errstate(all="ignore"):
        rounded = expected.astype(got.dtype)
    off = np.flatnonzero(got.view(bits) != rounded.view(bits))
    if not len(off):
        return Worst(0.5, float(x[0]))
    got, rounded, expected = got[off], rounded[off], expected[off]
    with np.errstate(all="ignore"):
        unit = np.spacing(np.minimum(np.abs(rounded), np.finfo(got.dtype).max)).astype(np.float64)
        distance = np.abs(got.astype(np.float64) - expected) / unit
    # A result that rounds to zero has the sign of the exact one.
    plain = np.isfinite(got) & np.isfinite(rounded) & ((got != 0) | (rounded != 0))
    distance = np.where(plain, distance, np.where(np.isnan(got) & np.isnan(rounded), 0.0, np.inf))
    at = int(np.argmax(distance))
    return Worst(max(0.5, float(distance[at])), float(x[off[at]]))


def every_float(name: str, target: str) -> Worst:
    """The worst of all 2^32 arguments, NaNs of every kind among them."""
    call, reference = kernel(name, "float32", target), exact(name, target)
    found = Worst(0.0, 0.0)
    steps = np.arange(CHUNK, dtype=np.uint32)
    for start in range(0, 1 << 32, CHUNK):
        x = (steps + np.uint32(start)).view(np.float32)
        with np.errstate(all="ignore"):
            expected = reference(x.astype(np.float64))
        here = worst(call(x), expected, x)
        if here.ulp > found.ulp:
            found = here
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("functions", nargs="*", metavar="FUNCTION", help=f"of {', '.join(NAMES)} (all)")
    parser.add_argument("--target", default="llvm")
    options = parser.parse_args()
    if unknown := [name for name in options.functions if name not in NAMES]:
        parser.error(f"unknown functions {', '.join(unknown)}; known: {', '.join(NAMES)}")
    failed = False
    for name in options.functions or NAMES:
        begun = time.perf_counter()
        found = every_float(name, options.target)
        failed |= not found.ulp <= LIMIT
        took = time.perf_counter() - begun
        print(f"{name:8}{found.ulp:8.4f} ulp at {found.at.hex()}  ({took:.0f} s)", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
