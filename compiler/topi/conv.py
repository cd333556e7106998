"""Convolutions, as direct loop nests over a padded input."""

from __future__ import annotations

from collections.abc import Sequence

from .. import te
from ..ir.dtype import DType
from .activation import ACTIVATIONS, epilogue
from .blocked import block_of, blocked_conv2d
from .checks import (
    check_choice,
    check_factors,
    check_fixed,
    check_tensor,
    check_vector,
    failure,
    integers,
)
from .matmul import accumulation
from .window import LAYOUTS, Window, pad_spatial

#: One for all spatial dimensions, or one for each.
Extents = int | Sequence[int]


def pad2d(x: te.Tensor, pad: Extents, layout: str = "NCHW", name: str = "pad") -> te.Tensor:
    """`x` with `pad` zeros around its height and width; `x` itself for no padding."""
    check_tensor("pad2d", "x", x, 4)
    check_choice("pad2d", "layout", layout, LAYOUTS[2])
    return pad_spatial(x, integers("pad2d", "pad", pad, 2, 0), layout, name=name)


def conv1d(
    x: te.Tensor,
    weight: te.Tensor,
    bias: te.Tensor | None = None,
    *,
    stride: Extents = 1,
    pad: Extents = 0,
    dilation: Extents = 1,
    groups: int = 1,
    layout: str = "NCW",
    activation: str = "none",
    out_dtype: str | DType | None = None,
    name: str = "Y",
) -> te.Tensor:
    """As conv2d, along one dimension. Layout NCW: x[n, ci, w], weight[co, ci/groups, kw]; NWC: x[n, w, ci],
    weight[kw, ci/groups, co]."""
    return _conv(
        1, x, weight, bias, stride, pad, dilation, groups, layout, activation, out_dtype, name
    )  # fmt: skip


def conv2d(
    x: te.Tensor,
    weight: te.Tensor,
    bias: te.Tensor | None = None,
    *,
    stride: Extents = 1,
    pad: Extents = 0,
    dilation: Extents = 1,
    groups: int = 1,
    layout: str = "NCHW",
    activation: str = "none",
    out_dtype: str | DType | None = None,
    name: str = "Y",
) -> te.Tensor:
    """activation(conv(x, weight) + bias) in at most three stages: the padded input, the convolution, what
    follows it.

    Layout NCHW: x[n, ci, h, w], weight[co, ci/groups, kh, kw]; NHWC: x[n, h, w, ci], weight[kh, kw,
    ci/groups, co]. NCHW16c and its like hold channels in blocks: x[n, ci/16, h, w, 16], weight[co/16, ci/16,
    kh, kw, 16 of ci, 16 of co], y[n, co/16, oh, ow, 16]; one group alone. bias[co].
    """
    block = block_of(layout)
    if block is not None:
        return blocked_conv2d(
            x, weight, bias, block, stride=stride, pad=pad, dilation=dilation, groups=groups,
            activation=activation, out_dtype=out_dtype, name=name,
        )  # fmt: skip
    return _conv(
        2, x, weight, bias, stride, pad, dilation, groups, layout, activation, out_dtype, name
    )  # fmt: skip


def conv3d(
    x: te.Tensor,
    weight: te.Tensor,
    bias: te.Tensor | None = None,
    *,
    stride: Extents = 1,
    pad: Extents = 0,
    dilation: Extents = 1,
    groups: int = 1,
    layout: str = "NCDHW",
    activation: str = "none",
    out_dtype: str | DType | None = None,
    name: str = "Y",
) -> te.Tensor:
    """As conv2d, in three dimensions. Layout NCDHW: x[n, ci, d, h, w], weight[co, ci/groups, kd, kh, kw];
    NDHWC: x[n, d, h, w, ci], weight[kd, kh, kw, ci/groups, co]."""
    return _conv(
        3, x, weight, bias, stride, pad, dilation, groups, layout, activation, out_dtype, name
    )  # fmt: skip


def _conv(
    rank: int, x: te.Tensor, weight: te.Tensor, bias: te.Tensor | None, stride: Extents, pad: Extents,
    dilation: Extents, groups: int, layout: str, activation: str, out_dtype: str | DType | None, name: str,
) -> te.Tensor:  # fmt: skip
    op = f"conv{rank}d"
    common_checks(op, rank, x, weight, rank + 2, layout, activation)
    (groups,) = integers(op, "groups", groups, 1, 1)
    first = layout[1] == "C"
    n, ci, *size = x.shape if first else (x.shape[0], x.shape[-1], *x.shape[1:-1])
    co, cig, *kernel = weight.shape if first else (weight.shape[-1], weight.shape[-2], *weight.shape[:-2])
    if ci != cig * groups or co % groups:
        raise failure(op, f"{ci} input and {co} output channels in {groups} groups do not fit {weight!r}")
    check_vector(op, "bias", bias, co, "output channel")
    window = Window.of(op, size, kernel, stride, pad, dilation)
    wide, out = accumulation(x.dtype, out_dtype)
    padded = pad_spatial(x, window.pad, layout)
    c, steps = te.reduce_axis((0, cig), name="c"), window.axes()

    def element(*index: te.Index) -> te.Value:
        b, o, *place = index if first else (index[0], index[-1], *index[1:-1])
        channel = c if groups == 1 else o // (co // groups) * cig + c
        at = window.at(place, steps)
        p = padded[(b, channel, *at) if first else (b, *at, channel)]
        q = weight[(o, c, *steps) if first else (*steps, c, o)]
        return te.sum(te.cast(q, wide) * te.cast(p, wide), axis=[c, *steps] if first else [*steps, c])

    shape = (n, co, *window.outputs) if first else (n, *window.outputs, co)
    names = ["n", *layout[1:].lower().replace("c", "o")]
    return finished(shape, element, names, bias, activation, wide, out, 1 if first else -1, name)


def depthwise_conv2d(
    x: te.Tensor,
    weight: te.Tensor,
    bias: te.Tensor | None = None,
    *,
    stride: Extents = 1,
    pad: Extents = 0,
    dilation: Extents = 1,
    layout: str = "NCHW",
    activation: str = "none",
    out_dtype: str | DType | None = None,
    name: str = "Y",
) -> te.Tensor:
    """One kernel for each channel. Layout NCHW: x[n, c, h, w], weight[c, kh, kw]; NHWC: x[n, h, w, c],
    weight[kh, kw, c]."""
    op = "depthwise_conv2d"
    common_checks(op, 2, x, weight, 3, layout, activation)
    first = layout == "NCHW"
    n, c, *size = x.shape if first else (x.shape[0], x.shape[-1], *x.shape[1:-1])
    cw, *kernel = weight.shape if first else (weight.shape[-1], *weight.shape[:-1])
    if c != cw:
        raise failure(op, f"{x!r} has {c} channels and {weight!r} has {cw}")
    check_vector(op, "bias", bias, c, "output channel")
    window = Window.of(op, size, kernel, stride, pad, dilation)
    wide, out = accumulation(x.dtype, out_dtype)
    padded = pad_spatial(x, window.pad, layout)
    steps = window.axes()

    def element(*index: te.Index) -> te.Value:
        b, o, *place = index if first else (index[0], index[-1], *index[1:-1])
        at = window.at(place, steps)
        p = padded[(b, o, *at) if first else (b, *at, o)]
        q = weight[(o, *steps) if first else (*steps, o)]
        return te.sum(te.cast(q, wide) * te.cast(p, wide), axis=steps)

    shape = (n, c, *window.outputs) if first else (n, *window.outputs, c)
    return finished(
        shape, element, ["n", *layout[1:].lower()], bias, activation, wide, out, 1 if first else -1, name
    )


def common_checks(
    op: str, rank: int, x: te.Tensor, weight: te.Tensor, weight_rank: int, layout: str, activation: str
) -> None:
    check_tensor(op, "x", x, rank + 2)
    check_tensor(op, "weight", weight, weight_rank)
    check_fixed(op, "x", x, range(1, x.ndim))
    check_fixed(op, "weight", weight, range(weight.ndim))
    check_factors(op, x, weight)
    check_choice(op, "layout", layout, LAYOUTS[rank])
    check_choice(op, "activation", activation, ACTIVATIONS)


def finished(
    shape: Sequence[int], element: object, names: list[str], bias: te.Tensor | None, activation: str,
    wide: DType, out: DType, axis: int, name: str,
) -> te.Tensor:  # fmt: skip
    """The convolution and what follows it."""
    alone = bias is None and activation == "none" and out == wide
    conv: te.Tensor = te.compute(shape, element, name=name if alone else "conv", names=names)  # type: ignore[call-overload]
    return epilogue(conv, bias, activation, axis=axis, dtype=out, name=name, names=names)
