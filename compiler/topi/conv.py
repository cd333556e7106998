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
from .window import LAYOUTS, Window, pad_spatial, zero

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
    _common(op, rank, x, weight, rank + 2, layout, activation)
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
    return _finished(shape, element, names, bias, activation, wide, out, 1 if first else -1, name)


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
    _common(op, 2, x, weight, 3, layout, activation)
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
    return _finished(
        shape, element, ["n", *layout[1:].lower()], bias, activation, wide, out, 1 if first else -1, name
    )


def conv2d_transpose(
    x: te.Tensor,
    weight: te.Tensor,
    bias: te.Tensor | None = None,
    *,
    stride: Extents = 1,
    pad: Extents = 0,
    output_pad: Extents = 0,
    activation: str = "none",
    out_dtype: str | DType | None = None,
    name: str = "Y",
) -> te.Tensor:
    """The gradient of conv2d with respect to its input: x[n, ci, h, w] scattered through weight[ci, co, kh,
    kw] to y[n, co, oh, ow], with oh = (h - 1) * stride - 2 * pad + kh + output_pad.

    Three stages at most: `x` with stride - 1 zeros between its elements and padding around them, the
    convolution with the kernel turned around, what follows it.
    """
    op = "conv2d_transpose"
    _common(op, 2, x, weight, 4, "NCHW", activation)
    n, ci, *size = x.shape
    cw, co, *kernel = weight.shape
    if ci != cw:
        raise failure(op, f"{x!r} has {ci} channels and {weight!r} takes {cw}")
    check_vector(op, "bias", bias, co, "output channel")
    strides, pads = integers(op, "stride", stride, 2, 1), integers(op, "pad", pad, 2, 0)
    extra = integers(op, "output_pad", output_pad, 2, 0)
    for e, s in zip(extra, strides, strict=True):
        if e >= s:
            raise failure(op, f"'output_pad' must be below 'stride' ({s}), got {output_pad!r}")
    every = zip(size, strides, pads, kernel, extra, strict=True)
    outputs = [(h - 1) * s - 2 * p + k + e for h, s, p, k, e in every]
    if min(outputs) < 1:
        raise failure(op, f"the padding {', '.join(map(str, pads))} leaves nothing of the output of {x!r}")
    wide, out = accumulation(x.dtype, out_dtype)
    spread = _spread(x, outputs, strides, [k - 1 - p for k, p in zip(kernel, pads, strict=True)], kernel)
    c, ky, kx = (te.reduce_axis((0, e), name=m) for e, m in ((ci, "c"), (kernel[0], "y"), (kernel[1], "x")))

    def element(b: te.Index, o: te.Index, i: te.Index, j: te.Index) -> te.Value:
        q = weight[c, o, kernel[0] - 1 - ky, kernel[1] - 1 - kx]
        p = spread[b, c, i + ky, j + kx]
        return te.sum(te.cast(q, wide) * te.cast(p, wide), axis=[c, ky, kx])

    shape = (n, co, *outputs)
    return _finished(shape, element, ["n", "o", "h", "w"], bias, activation, wide, out, 1, name)


def _spread(
    x: te.Tensor,
    outputs: Sequence[int],
    strides: Sequence[int],
    offsets: Sequence[int],
    kernel: Sequence[int],
) -> te.Tensor:
    """`x` with its element i at i * stride + offset, and zeros elsewhere; all that windows of `kernel` at the
    outputs read. Offsets may be negative: what lies before the start is left out."""
    n, c, *size = x.shape
    shape = (n, c, *(o + k - 1 for o, k in zip(outputs, kernel, strict=True)))

    def element(b: te.Index, ch: te.Index, *place: te.Index) -> te.Value:
        at, conditions = [], []
        for r, s, off, h in zip(place, strides, offsets, size, strict=True):
            # Shifted by whole strides, so that nothing that is divided is negative.
            shift = max(0, -(-off // s))
            moved = r + (shift * s - off)
            i = moved // s - shift
            at.append(i)
            conditions += [i >= 0, i < h, *([moved % s == 0] if s > 1 else [])]
        return te.if_then_else(te.all(*conditions), x[(b, ch, *at)], zero(x.dtype))

    return te.compute(shape, element, name="spread", names=["n", "c", "h", "w"])


def _common(
    op: str, rank: int, x: te.Tensor, weight: te.Tensor, weight_rank: int, layout: str, activation: str
) -> None:
    check_tensor(op, "x", x, rank + 2)
    check_tensor(op, "weight", weight, weight_rank)
    check_fixed(op, "x", x, range(1, x.ndim))
    check_fixed(op, "weight", weight, range(weight.ndim))
    check_factors(op, x, weight)
    check_choice(op, "layout", layout, LAYOUTS[rank])
    check_choice(op, "activation", activation, ACTIVATIONS)


def _finished(
    shape: Sequence[int], element: object, names: list[str], bias: te.Tensor | None, activation: str,
    wide: DType, out: DType, axis: int, name: str,
) -> te.Tensor:  # fmt: skip
    """The convolution and what follows it."""
    alone = bias is None and activation == "none" and out == wide
    conv: te.Tensor = te.compute(shape, element, name=name if alone else "conv", names=names)  # type: ignore[call-overload]
    return epilogue(conv, bias, activation, axis=axis, dtype=out, name=name, names=names)
