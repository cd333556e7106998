"""Elementwise operators and permutations."""

from __future__ import annotations

from collections.abc import Sequence

from .. import te
from .activation import ACTIVATIONS, INTEGER_ACTIVATIONS, activate
from .broadcast import BROADCASTS, combined
from .checks import check_choice, check_floats, check_tensor, failure


def add(a: te.Tensor, b: te.Tensor, *, name: str = "Y") -> te.Tensor:
    """a + b, with NumPy's broadcasting."""
    return combined("add", a, b, BROADCASTS["add"], name)


def unary(x: te.Tensor, function: str, *, name: str = "Y") -> te.Tensor:
    """One of the activations, elementwise."""
    check_tensor("unary", "x", x)
    check_choice("unary", "function", function, ACTIVATIONS)
    if function not in INTEGER_ACTIVATIONS:
        check_floats("unary", "x", x)
    return te.compute(x.shape, lambda *i: activate(x[i], function), name=name)


def transpose(x: te.Tensor, axes: Sequence[int], *, name: str = "Y") -> te.Tensor:
    """Y with Y.shape[d] = x.shape[axes[d]], as NumPy's transpose."""
    check_tensor("transpose", "x", x)
    if not isinstance(axes, Sequence) or isinstance(axes, str) or sorted(axes) != list(range(x.ndim)):
        raise failure("transpose", f"'axes' must order the {x.ndim} dimensions of {x!r}, got {axes!r}")
    shape = tuple(x.shape[d] for d in axes)
    y: te.Tensor = te.compute(shape, lambda *i: x[tuple(i[axes.index(d)] for d in range(x.ndim))], name=name)
    return y
