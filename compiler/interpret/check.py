"""Whether a kernel's outputs are what the reference says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .inputs import Array

# Elements looked at together: 128 KiB of float64.
_PIECE = 1 << 14


@dataclass(frozen=True, slots=True, eq=False)
class Expected:
    """What a program must compute. One entry for each output, in parameter order.

    outputs: float64 for floats, exact values otherwise. tolerances: the largest |got - output| that passes,
    element by element; 0 means equal, infinity that the inputs decide nothing. positions: where the outputs
    stand among the parameters.
    """

    outputs: tuple[Array, ...]
    tolerances: tuple[Array, ...]
    names: tuple[str, ...]
    positions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """ok: every element passes. worst: the largest |got - want| / tolerance (0 when all are equal, infinity
    where none is allowed). message: empty, or the output, the index, and what stood there."""

    ok: bool
    worst: float
    message: str


def check(expected: Expected, arrays: Sequence[Array]) -> CheckResult:
    """Compares the outputs among `arrays`, which hold one array for each parameter. NaN passes only where NaN
    is expected."""
    worst = 0.0
    for want, tolerance, name, position in zip(
        expected.outputs, expected.tolerances, expected.names, expected.positions, strict=True
    ):
        got = arrays[position]
        if got.shape != want.shape:
            raise ValueError(f"the output {name!r} has the shape {want.shape}, got an array of {got.shape}")
        if (least := _worst_of_floats(got, want, tolerance)) is not None:
            worst = max(worst, least)
            continue
        ratio = _ratios(got, want, tolerance)
        if ratio.size and not float(ratio.max()) <= 1.0:
            return CheckResult(False, float(ratio.max()), _message(name, got, want, tolerance, ratio))
        worst = max(worst, float(ratio.max(initial=0.0)))
    return CheckResult(True, worst, "")


def _worst_of_floats(got: Array, want: Array, tolerance: Array) -> float | None:
    """The largest |got - want| / tolerance of plain cases, piece by piece so that temporaries stay in
    the caches: None where an element may be wrong, not finite, or without tolerance: a matter for _ratios."""
    if want.dtype != np.float64 or got.dtype.kind != "f" or not got.flags.c_contiguous:
        return None
    flat = got.reshape(-1), want.reshape(-1), tolerance.reshape(-1)
    room = np.empty(min(_PIECE, got.size), dtype=np.float64)
    worst = 0.0
    with np.errstate(all="ignore"):
        for start in range(0, got.size, _PIECE):
            seen, reference, allowed = (a[start : start + _PIECE] for a in flat)
            ratio = np.subtract(seen, reference, out=room[: len(seen)])
            np.divide(np.abs(ratio, out=ratio), allowed, out=ratio)
            worst = max(worst, piece := float(ratio.max()))
            if not piece <= 1.0:
                return None
    return worst


def _ratios(got: Array, want: Array, tolerance: Array) -> Array:
    """|got - want| / tolerance; at most 1 passes."""
    with np.errstate(all="ignore"):
        if want.dtype == np.bool_:
            # By its byte: a poisoned element is neither 0 nor 1.
            seen, reference = got.view(np.uint8).astype(np.float64), want.astype(np.float64)
        elif want.dtype.kind in "iu":
            equal = got == want
            distance = np.where(
                equal, 0.0, np.maximum(1.0, np.abs(got.astype(np.float64) - want.astype(np.float64)))
            )
            return _divide(distance, tolerance)
        else:
            seen, reference = got.astype(np.float64), want
        same = (seen == reference) | (np.isnan(seen) & np.isnan(reference))
        distance = np.where(same, 0.0, np.abs(seen - reference))
        # NaN on one side only, and infinity against anything else, are infinitely far.
        distance = np.where(np.isnan(distance), np.inf, distance)
        return _divide(distance, tolerance)


def _divide(distance: Array, tolerance: Array) -> Array:
    ratio = distance / tolerance
    ratio = np.where(distance == 0.0, 0.0, ratio)
    return np.where(np.isinf(tolerance), 0.0, ratio)


def _message(name: str, got: Array, want: Array, tolerance: Array, ratio: Array) -> str:
    bad = int(np.count_nonzero(~(ratio <= 1.0)))
    at = np.unravel_index(int(np.argmax(ratio)), ratio.shape)
    index = ", ".join(str(int(i)) for i in at)
    allowed = float(tolerance[at])
    within = f" within {allowed:.3g}" if allowed and np.isfinite(want[at].astype(np.float64)) else ""
    return (
        f"output {name!r} is wrong at [{index}]: got {_show(got[at])}, want {_show(want[at])}{within}; "
        f"{bad} of {got.size} elements are wrong"
    )


def _show(x: Any) -> str:
    return f"{float(x):.9g}" if isinstance(x, np.floating) or type(x).__name__ == "bfloat16" else str(x)
