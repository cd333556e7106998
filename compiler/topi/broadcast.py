"""Operations of two tensors, element by element, with NumPy's broadcasting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import te
from .checks import check_choice, check_same_dtype, check_tensor, failure, same

BROADCASTS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "floor_divide": te.floordiv,
    "remainder": te.floormod,
    "maximum": te.maximum,
    "minimum": te.minimum,
    "less": lambda a, b: a < b,
    "equal": lambda a, b: a == b,
}
#: Those that exist for floats only, and for integers only.
FLOAT_BROADCASTS = ("divide",)
INTEGER_BROADCASTS = ("floor_divide", "remainder")


def broadcast_shape(op: str, a: te.Tensor, b: te.Tensor) -> tuple[int | te.Index, ...]:
    """NumPy's common shape: from the last dimension on, extents agree or one of them is 1."""
    rank = max(a.ndim, b.ndim)
    wide = [(1,) * (rank - x.ndim) + x.shape for x in (a, b)]
    out: list[int | te.Index] = []
    for d, (m, n) in enumerate(zip(*wide, strict=True)):
        if not (same([m], [n]) or same([m], [1]) or same([n], [1])):
            raise failure(op, f"the shapes of {a!r} and {b!r} do not broadcast: {m} and {n} in dimension {d}")
        out.append(n if same([m], [1]) else m)
    return tuple(out)


def broadcast(a: te.Tensor, b: te.Tensor, function: str, *, name: str = "Y") -> te.Tensor:
    """function(a, b) with NumPy's broadcasting; `function` is one of BROADCASTS, by NumPy's names."""
    check_choice("broadcast", "function", function, tuple(BROADCASTS))
    return combined("broadcast", a, b, BROADCASTS[function], name)


def combined(op: str, a: te.Tensor, b: te.Tensor, f: Callable[[Any, Any], Any], name: str) -> te.Tensor:
    """f of both, element by element."""
    check_tensor(op, "a", a)
    check_tensor(op, "b", b)
    check_same_dtype(op, a, b)
    shape = broadcast_shape(op, a, b)
    y: te.Tensor = te.compute(shape, lambda *i: f(_at(a, i, shape), _at(b, i, shape)), name=name)
    return y


def _at(x: te.Tensor, index: tuple[te.Index, ...], shape: tuple[int | te.Index, ...]) -> te.Value:
    """The element of `x` for an index of the result, whose shape is `shape`."""
    first = len(index) - x.ndim
    wide = zip(index[first:], x.shape, shape[first:], strict=True)
    return x[tuple(0 if same([n], [1]) and not same([whole], [1]) else i for i, n, whole in wide)]
