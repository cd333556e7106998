"""From the arguments of a request to tensors: the placeholders and the output, in parameter order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import te
from ..ir.dtype import DType
from .broadcast import broadcast
from .conv import conv1d, conv2d, conv3d, depthwise_conv2d
from .elementwise import add, transpose, unary
from .matmul import accumulation, dense, matmul
from .parameters import OperatorError
from .pool import pool1d, pool2d, pool3d
from .reduce import cumulative, reduce
from .rows import layer_norm, softmax
from .transposed import conv2d_transpose

Arguments = dict[str, Any]


def make_matmul(p: Arguments) -> list[te.Tensor]:
    return _product(p, ())


def make_batch_matmul(p: Arguments) -> list[te.Tensor]:
    return _product(p, (p["b"],))


def _product(p: Arguments, batch: tuple[int, ...]) -> list[te.Tensor]:
    m, n, k, ta, tb = p["m"], p["n"], p["k"], p["transpose_a"], p["transpose_b"]
    a = te.placeholder((*batch, k, m) if ta else (*batch, m, k), p["dtype"], name="A")
    b = te.placeholder((*batch, n, k) if tb else (*batch, k, n), p["dtype"], name="B")
    return [a, b, matmul(a, b, transpose_a=ta, transpose_b=tb, out_dtype=p["out_dtype"])]


def make_dense(p: Arguments) -> list[te.Tensor]:
    m, n, k = p["m"], p["n"], p["k"]
    x = te.placeholder((m, k), p["dtype"], name="X")
    w = _weight(p, (k, n) if p["weights"] == "kn" else (n, k))
    bias = _bias(p, n)
    y = dense(x, w, bias, weights=p["weights"], activation=p["activation"], out_dtype=p["out_dtype"])
    return [x, w, *_given(bias), y]


def make_conv1d(p: Arguments) -> list[te.Tensor]:
    return _conv(p, conv1d, "w")


def make_conv2d(p: Arguments) -> list[te.Tensor]:
    return _conv(p, conv2d, "hw")


def make_conv3d(p: Arguments) -> list[te.Tensor]:
    return _conv(p, conv3d, "dhw")


def _conv(p: Arguments, operator: Callable[..., te.Tensor], dims: str) -> list[te.Tensor]:
    n, ci, co, groups = (p[x] for x in ("n", "ci", "co", "groups"))
    for name in ("ci", "co"):
        if p[name] % groups:
            raise OperatorError(
                f"{name!r} must be a multiple of 'groups' ({groups}), got {p[name]}", f"/{name}"
            )
    size, kernel = [p[d] for d in dims], [p[f"k{d}"] for d in dims]
    first = p["layout"][1] == "C"
    x = te.placeholder((n, ci, *size) if first else (n, *size, ci), p["dtype"], name="X")
    weight = _weight(p, (co, ci // groups, *kernel) if first else (*kernel, ci // groups, co))
    bias = _bias(p, co)
    y = operator(
        x,
        weight,
        bias,
        stride=p["stride"],
        pad=p["pad"],
        dilation=p["dilation"],
        groups=groups,
        layout=p["layout"],
        activation=p["activation"],
        out_dtype=p["out_dtype"],
    )
    return [x, weight, *_given(bias), y]


def make_conv2d_transpose(p: Arguments) -> list[te.Tensor]:
    n, ci, h, w, co, kh, kw = (p[x] for x in ("n", "ci", "h", "w", "co", "kh", "kw"))
    x = te.placeholder((n, ci, h, w), p["dtype"], name="X")
    weight = _weight(p, (ci, co, kh, kw))
    bias = _bias(p, co)
    y = conv2d_transpose(
        x,
        weight,
        bias,
        stride=p["stride"],
        pad=p["pad"],
        output_pad=p["output_pad"],
        activation=p["activation"],
        out_dtype=p["out_dtype"],
    )
    return [x, weight, *_given(bias), y]


def make_depthwise_conv2d(p: Arguments) -> list[te.Tensor]:
    n, c, h, w, kh, kw = (p[x] for x in ("n", "c", "h", "w", "kh", "kw"))
    nchw = p["layout"] == "NCHW"
    x = te.placeholder((n, c, h, w) if nchw else (n, h, w, c), p["dtype"], name="X")
    weight = _weight(p, (c, kh, kw) if nchw else (kh, kw, c))
    bias = _bias(p, c)
    y = depthwise_conv2d(
        x,
        weight,
        bias,
        stride=p["stride"],
        pad=p["pad"],
        dilation=p["dilation"],
        layout=p["layout"],
        activation=p["activation"],
        out_dtype=p["out_dtype"],
    )
    return [x, weight, *_given(bias), y]


def _weight(p: Arguments, shape: tuple[int, ...]) -> te.Tensor:
    return te.placeholder(shape, p["dtype"], name="W", constant=p["constant_weights"])


def _bias(p: Arguments, channels: int) -> te.Tensor | None:
    """A bias of integers is in what they accumulate in."""
    if not p["bias"]:
        return None
    inputs = DType.parse(p["dtype"])
    dtype = accumulation(inputs, None)[0] if inputs.is_int else inputs
    return te.placeholder((channels,), dtype, name="B", constant=p["constant_weights"])


def _given(bias: te.Tensor | None) -> list[te.Tensor]:
    return [] if bias is None else [bias]


def make_softmax(p: Arguments) -> list[te.Tensor]:
    x = te.placeholder((p["m"], p["n"]), p["dtype"], name="X")
    return [x, softmax(x)]


def make_layer_norm(p: Arguments) -> list[te.Tensor]:
    x = te.placeholder((p["m"], p["n"]), p["dtype"], name="X")
    if not p["affine"]:
        return [x, layer_norm(x, epsilon=p["epsilon"])]
    gamma, beta = (te.placeholder((p["n"],), p["dtype"], name=name) for name in ("gamma", "beta"))
    return [x, gamma, beta, layer_norm(x, gamma, beta, epsilon=p["epsilon"])]


def make_add(p: Arguments) -> list[te.Tensor]:
    a, b = (te.placeholder(p["shape"], p["dtype"], name=name) for name in ("A", "B"))
    return [a, b, add(a, b)]


def make_elementwise(p: Arguments) -> list[te.Tensor]:
    x = te.placeholder(p["shape"], p["dtype"], name="X")
    return [x, unary(x, p["activation"])]


def make_transpose(p: Arguments) -> list[te.Tensor]:
    rank = len(p["shape"])
    axes = p["axes"] if p["axes"] is not None else tuple(reversed(range(rank)))
    if sorted(axes) != list(range(rank)):
        raise OperatorError(f"'axes' must hold 0 to {rank - 1}, each once, got {list(axes)}", "/axes")
    x = te.placeholder(p["shape"], p["dtype"], name="X")
    return [x, transpose(x, axes)]


def make_pool1d(p: Arguments) -> list[te.Tensor]:
    return _pool(p, pool1d, "w")


def make_pool2d(p: Arguments) -> list[te.Tensor]:
    return _pool(p, pool2d, "hw")


def make_pool3d(p: Arguments) -> list[te.Tensor]:
    return _pool(p, pool3d, "dhw")


def _pool(p: Arguments, operator: Callable[..., te.Tensor], dims: str) -> list[te.Tensor]:
    size, first = [p[d] for d in dims], p["layout"][1] == "C"
    shape = (p["n"], p["c"], *size) if first else (p["n"], *size, p["c"])
    x = te.placeholder(shape, p["dtype"], name="X")
    options = {name: p[name] for name in ("stride", "pad", "dilation", "layout")}
    return [x, operator(x, p["function"], p["window"], **options)]


def make_broadcast(p: Arguments) -> list[te.Tensor]:
    a, b = (te.placeholder(p[name], p["dtype"], name=name.upper()) for name in ("a", "b"))
    return [a, b, broadcast(a, b, p["function"])]


def make_reduce(p: Arguments) -> list[te.Tensor]:
    x = te.placeholder(p["shape"], p["dtype"], name="X")
    return [x, reduce(x, p["function"], p["axes"], keepdims=p["keepdims"], out_dtype=p["out_dtype"])]


def make_cumulative(p: Arguments) -> list[te.Tensor]:
    x = te.placeholder(p["shape"], p["dtype"], name="X")
    return [x, cumulative(x, p["function"], p["axis"])]
