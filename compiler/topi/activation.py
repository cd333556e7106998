"""What may follow a contraction in one elementwise stage: a bias, an activation, the cast to the output's
dtype."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from .. import te
from ..ir.dtype import DType
from ..te.errors import parse_dtype
from ..te.value import Value, found
from .checks import check_choice, check_floats, check_tensor, failure, same

Activation = Literal["none", "relu", "relu6", "gelu", "sigmoid", "tanh", "silu"]


def _relu(x: Value) -> Value:
    return te.maximum(x, 0)  # type: ignore[return-value]


def _relu6(x: Value) -> Value:
    return te.minimum(_relu(x), 6)  # type: ignore[return-value]


def _gelu(x: Value) -> Value:
    return te.gelu(x)


def _silu(x: Value) -> Value:
    return x * te.sigmoid(x)  # type: ignore[no-any-return]


_FUNCTIONS: dict[str, Callable[[Value], Value]] = {
    "none": lambda x: x,
    "relu": _relu,
    "relu6": _relu6,
    "gelu": _gelu,
    "sigmoid": te.sigmoid,
    "tanh": te.tanh,
    "silu": _silu,
}

ACTIVATIONS: tuple[str, ...] = tuple(_FUNCTIONS)
#: Those that integers have too.
INTEGER_ACTIVATIONS = ("none", "relu", "relu6")


def activate(x: Value, activation: str = "none") -> Value:
    """The activation of one value. gelu is the exact one: x·Φ(x); silu is x · sigmoid(x)."""
    check_choice("activate", "activation", activation, ACTIVATIONS)
    if not isinstance(x, Value):
        raise failure("activate", f"'x' must be an element such as X[i], got {found(x)}")
    kinds = ACTIVATIONS if x.dtype.is_float else INTEGER_ACTIVATIONS if x.dtype.is_int else ("none",)
    if activation not in kinds:
        raise failure("activate", f"{activation!r} is not for {x.dtype}")
    return _FUNCTIONS[activation](x)


def epilogue(
    x: te.Tensor,
    bias: te.Tensor | None = None,
    activation: str = "none",
    *,
    axis: int = -1,
    dtype: str | DType | None = None,
    name: str = "Y",
    names: Sequence[str] | None = None,
) -> te.Tensor:
    """activation(x + bias) as one stage: the bias runs along dimension `axis`, arithmetic is in the dtype of
    `x`, the result is cast to `dtype`. `x` itself where there is nothing to do."""
    check_tensor("epilogue", "x", x)
    out = x.dtype if dtype is None else parse_dtype(dtype)
    check_choice("epilogue", "activation", activation, ACTIVATIONS)
    if activation not in INTEGER_ACTIVATIONS:
        check_floats("epilogue", "x", x)
    if bias is not None:
        check_tensor("epilogue", "bias", bias, 1)
        fits = type(axis) is int and -x.ndim <= axis < x.ndim and same([x.shape[axis]], bias.shape)
        if not fits:
            raise failure("epilogue", f"'bias' {bias!r} does not run along the dimension {axis!r} of {x!r}")
    if bias is None and activation == "none" and out == x.dtype:
        return x

    def element(*i: te.Index) -> Value:
        v: Value = x[i]
        if bias is not None:
            v = v + te.cast(bias[i[axis]], x.dtype)
        return te.cast(activate(v, activation), out)

    return te.compute(x.shape, element, name=name, names=names)
