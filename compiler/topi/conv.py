"""Convolutions in two dimensions, as direct loop nests over a padded input."""

from __future__ import annotations

from typing import Literal

from .. import te
from ..ir.dtype import DType
from ..te.errors import tensor_error
from .activation import epilogue
from .matmul import accumulation

Layout = Literal["NCHW", "NHWC"]
LAYOUTS = ("NCHW", "NHWC")
Pair = int | tuple[int, int]


def pair(x: Pair) -> tuple[int, int]:
    """(for the height, for the width)"""
    return (x, x) if isinstance(x, int) else (x[0], x[1])


def output_extent(size: int, kernel: int, stride: int, pad: int, dilation: int) -> int:
    """How many places a kernel has along one dimension; below 1 where it does not fit."""
    return (size + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1


def pad2d(x: te.Tensor, pad: Pair, layout: str = "NCHW", name: str = "pad") -> te.Tensor:
    """`x` with `pad` zeros around its height and width; `x` itself for no padding."""
    ph, pw = pair(pad)
    if ph == 0 and pw == 0:
        return x
    dh, dw = (2, 3) if layout == "NCHW" else (1, 2)
    shape = list(x.shape)
    shape[dh] += 2 * ph
    shape[dw] += 2 * pw

    def element(*index: te.Index) -> te.Value:
        at = list(index)
        h, w = at[dh], at[dw]
        at[dh], at[dw] = h - ph, w - pw
        inside = te.all(h >= ph, h < x.shape[dh] + ph, w >= pw, w < x.shape[dw] + pw)
        return te.if_then_else(inside, x[tuple(at)], _zero(x.dtype))

    return te.compute(shape, element, name=name, names=["n", *layout[1:].lower()])


def _zero(dtype: DType) -> te.Value:
    return te.const(0.0 if dtype.is_float else 0, dtype)


def conv2d(
    x: te.Tensor,
    weight: te.Tensor,
    bias: te.Tensor | None = None,
    *,
    stride: Pair = 1,
    pad: Pair = 0,
    dilation: Pair = 1,
    groups: int = 1,
    layout: str = "NCHW",
    activation: str = "none",
    out_dtype: str | DType | None = None,
    name: str = "Y",
) -> te.Tensor:
    """activation(conv(x, weight) + bias) in at most three stages: the padded input, the convolution, what
    follows it.

    Layout NCHW: x[n, ci, h, w], weight[co, ci/groups, kh, kw]; NHWC: x[n, h, w, ci], weight[kh, kw,
    ci/groups, co]. bias[co].
    """
    nchw = layout == "NCHW"
    if x.ndim != 4 or weight.ndim != 4:
        raise tensor_error(f"topi.conv2d: {x!r} and {weight!r} must have 4 dimensions")
    n, ci, h, w = x.shape if nchw else (x.shape[0], x.shape[3], x.shape[1], x.shape[2])
    co, cig, kh, kw = (
        weight.shape if nchw else (weight.shape[3], weight.shape[2], weight.shape[0], weight.shape[1])
    )
    if ci != cig * groups or co % groups:
        raise tensor_error(
            f"topi.conv2d: {ci} input and {co} output channels in {groups} groups do not fit {weight!r}"
        )
    (sh, sw), (ph, pw), (dh, dw) = pair(stride), pair(pad), pair(dilation)
    oh, ow = output_extent(h, kh, sh, ph, dh), output_extent(w, kw, sw, pw, dw)
    if oh < 1 or ow < 1:
        raise tensor_error(
            f"topi.conv2d: a kernel of {kh} x {kw} does not fit into {h} x {w} with the padding {ph}, {pw}"
        )
    wide, out = accumulation(x.dtype, out_dtype)
    padded = pad2d(x, (ph, pw), layout)
    c, ky, kx = (te.reduce_axis((0, e), name=m) for e, m in ((cig, "c"), (kh, "y"), (kw, "x")))

    def step(b: te.Index, o: te.Index, i: te.Index, j: te.Index) -> te.Value:
        channel = c if groups == 1 else o // (co // groups) * cig + c
        row, column = i * sh + ky * dh, j * sw + kx * dw
        p = padded[b, channel, row, column] if nchw else padded[b, row, column, channel]
        q = weight[o, c, ky, kx] if nchw else weight[ky, kx, c, o]
        return te.sum(te.cast(q, wide) * te.cast(p, wide), axis=[c, ky, kx] if nchw else [ky, kx, c])

    alone = bias is None and activation == "none" and out == wide
    names = ["n", "o", "h", "w"] if nchw else ["n", "h", "w", "o"]
    shape = (n, co, oh, ow) if nchw else (n, oh, ow, co)
    conv = te.compute(
        shape,
        step if nchw else lambda b, i, j, o: step(b, o, i, j),
        name=name if alone else "conv",
        names=names,
    )
    return epilogue(conv, bias, activation, axis=1 if nchw else 3, dtype=out, name=name, names=names)


def depthwise_conv2d(
    x: te.Tensor,
    weight: te.Tensor,
    bias: te.Tensor | None = None,
    *,
    stride: Pair = 1,
    pad: Pair = 0,
    dilation: Pair = 1,
    layout: str = "NCHW",
    activation: str = "none",
    out_dtype: str | DType | None = None,
    name: str = "Y",
) -> te.Tensor:
    """One kernel for each channel. Layout NCHW: x[n, c, h, w], weight[c, kh, kw]; NHWC: x[n, h, w, c],
    weight[kh, kw, c]."""
    nchw = layout == "NCHW"
    if x.ndim != 4 or weight.ndim != 3:
        raise tensor_error(f"topi.depthwise_conv2d: {x!r} must have 4 dimensions and {weight!r} 3")
    n, c, h, w = x.shape if nchw else (x.shape[0], x.shape[3], x.shape[1], x.shape[2])
    cw, kh, kw = weight.shape if nchw else (weight.shape[2], weight.shape[0], weight.shape[1])
    if c != cw:
        raise tensor_error(f"topi.depthwise_conv2d: {x!r} has {c} channels and {weight!r} has {cw}")
    (sh, sw), (ph, pw), (dh, dw) = pair(stride), pair(pad), pair(dilation)
    oh, ow = output_extent(h, kh, sh, ph, dh), output_extent(w, kw, sw, pw, dw)
    if oh < 1 or ow < 1:
        raise tensor_error(
            f"topi.depthwise_conv2d: a kernel of {kh} x {kw} does not fit into {h} x {w} "
            f"with the padding {ph}, {pw}"
        )
    wide, out = accumulation(x.dtype, out_dtype)
    padded = pad2d(x, (ph, pw), layout)
    ky, kx = (te.reduce_axis((0, e), name=m) for e, m in ((kh, "y"), (kw, "x")))

    def step(b: te.Index, o: te.Index, i: te.Index, j: te.Index) -> te.Value:
        row, column = i * sh + ky * dh, j * sw + kx * dw
        p = padded[b, o, row, column] if nchw else padded[b, row, column, o]
        q = weight[o, ky, kx] if nchw else weight[ky, kx, o]
        return te.sum(te.cast(q, wide) * te.cast(p, wide), axis=[ky, kx])

    alone = bias is None and activation == "none" and out == wide
    names = ["n", "c", "h", "w"] if nchw else ["n", "h", "w", "c"]
    conv = te.compute(
        (n, c, oh, ow) if nchw else (n, oh, ow, c),
        step if nchw else lambda b, i, j, o: step(b, o, i, j),
        name=name if alone else "conv",
        names=names,
    )
    return epilogue(conv, bias, activation, axis=1 if nchw else 3, dtype=out, name=name, names=names)
