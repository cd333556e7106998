"""Convolution over channels in blocks: NCHW16c and its like."""

from __future__ import annotations

import re

from .. import te
from ..ir.dtype import DType
from .activation import ACTIVATIONS, activate
from .checks import check_choice, check_fixed, check_same_dtype, check_tensor, check_vector, failure, integers
from .matmul import accumulation
from .window import Window, pad_spatial

_LAYOUT = re.compile(r"NCHW([1-9][0-9]{0,2})c")


def block_of(layout: object) -> int | None:
    """Channels of a block: 16 of NCHW16c; None for any other layout."""
    found = _LAYOUT.fullmatch(layout) if isinstance(layout, str) else None
    return int(found[1]) if found else None


def blocked_conv2d(
    x: te.Tensor,
    weight: te.Tensor,
    bias: te.Tensor | None,
    block: int,
    *,
    stride: object,
    pad: object,
    dilation: object,
    groups: object,
    activation: str,
    out_dtype: str | DType | None,
    name: str,
) -> te.Tensor:
    """activation(conv(x, weight) + bias) for x[n, ci / b, h, w, b], weight[co / b, ci / b, kh, kw, b of ci, b
    of co] and bias[co], with blocks of b channels: y[n, co / b, oh, ow, b]. One group alone."""
    op = "conv2d"
    check_tensor(op, "x", x, 5)
    check_tensor(op, "weight", weight, 6)
    check_fixed(op, "x", x, range(1, 5))
    check_fixed(op, "weight", weight, range(6))
    check_same_dtype(op, x, weight)
    check_choice(op, "activation", activation, ACTIVATIONS)
    if integers(op, "groups", groups, 1, 1) != (1,):
        raise failure(op, "a layout in blocks of channels has one group")
    n, blocks, *size, inner = x.shape
    out_blocks, in_blocks, *kernel, block_in, block_out = weight.shape
    if (inner, blocks, block_in, block_out) != (block, in_blocks, block, block):
        raise failure(op, f"{x!r} and {weight!r} do not hold blocks of {block} channels that fit")
    check_vector(op, "bias", bias, out_blocks * block, "output channel")
    window = Window.of(op, size, kernel, stride, pad, dilation)
    wide, out = accumulation(x.dtype, out_dtype)
    padded = pad_spatial(x, window.pad, "NCHWB")
    c, steps, b = (
        te.reduce_axis((0, in_blocks), name="c"),
        window.axes(),
        te.reduce_axis((0, block), name="b"),
    )

    def element(*index: te.Index) -> te.Value:
        image, o, *place, i = index
        p = padded[(image, c, *window.at(place, steps), b)]
        return te.sum(te.cast(weight[(o, c, *steps, b, i)], wide) * te.cast(p, wide), axis=[c, *steps, b])

    names = ["n", "o", "h", "w", "i"]
    shape = (n, out_blocks, *window.outputs, block)
    alone = bias is None and activation == "none" and out == wide
    conv: te.Tensor = te.compute(shape, element, name=name if alone else "conv", names=names)
    if alone:
        return conv

    def behind(*index: te.Index) -> te.Value:
        v: te.Value = conv[index]
        if bias is not None:
            v = v + te.cast(bias[index[1] * block + index[4]], wide)
        return te.cast(activate(v, activation), out)

    y: te.Tensor = te.compute(shape, behind, name=name, names=names)
    return y
