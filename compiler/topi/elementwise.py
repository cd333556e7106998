"""Elementwise operators and permutations."""

from __future__ import annotations

from collections.abc import Sequence

from .. import te
from ..te.errors import tensor_error
from .activation import activate


def add(a: te.Tensor, b: te.Tensor, *, name: str = "Y") -> te.Tensor:
    """a + b, of one shape."""
    if a.shape != b.shape:
        raise tensor_error(f"topi.add: the shapes of {a!r} and {b!r} differ")
    y: te.Tensor = te.compute(a.shape, lambda *i: a[i] + b[i], name=name)
    return y


def unary(x: te.Tensor, function: str, *, name: str = "Y") -> te.Tensor:
    """One of the activations, elementwise."""
    return te.compute(x.shape, lambda *i: activate(x[i], function), name=name)


def transpose(x: te.Tensor, axes: Sequence[int], *, name: str = "Y") -> te.Tensor:
    """Y with Y.shape[d] = x.shape[axes[d]], as NumPy's transpose."""
    if sorted(axes) != list(range(x.ndim)):
        raise tensor_error(f"topi.transpose: {list(axes)} is no order of the {x.ndim} dimensions of {x!r}")
    shape = tuple(x.shape[d] for d in axes)
    y: te.Tensor = te.compute(shape, lambda *i: x[tuple(i[axes.index(d)] for d in range(x.ndim))], name=name)
    return y
