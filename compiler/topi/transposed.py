"""Transposed convolution without the zeros between the elements of its input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .. import te
from ..ir.dtype import DType
from .activation import epilogue
from .checks import check_vector, failure, integers
from .conv import Extents, common_checks, finished
from .matmul import accumulation
from .window import zero


@dataclass(frozen=True, slots=True)
class Phases:
    """One dimension. An output at `u = stride * t + p`, counted with the padding in front, takes the taps
    `p + stride * m` of the kernel, each from the input at `t - m`: windows of `taps` neighbours, the same for
    every phase `p`. first: the lowest `t` of an output. count: how many there are. shift: where in its
    first `t` the first output lies."""

    size: int
    kernel: int
    stride: int
    pad: int
    outputs: int

    @property
    def taps(self) -> int:
        return -(-self.kernel // self.stride)

    @property
    def first(self) -> int:
        return self.pad // self.stride

    @property
    def shift(self) -> int:
        return self.pad % self.stride

    @property
    def count(self) -> int:
        return (self.pad + self.outputs - 1) // self.stride - self.first + 1

    @property
    def is_uneven(self) -> bool:
        """Whether the last tap is none of the kernel's in some phases."""
        return self.kernel % self.stride > 0


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

    Outputs that are a stride apart are windows over neighbours of `x`. So there are: `x` with padding around
    it, the weight with zeros behind it where the stride does not divide the kernel, a convolution for each
    phase of the stride, and what puts the phases between each other and follows.
    """
    op = "conv2d_transpose"
    common_checks(op, 2, x, weight, 4, "NCHW", activation)
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
    dims = [Phases(*d) for d in zip(size, kernel, strides, pads, outputs, strict=True)]
    padded = _padded(x, dims)
    many = dims[0].stride * dims[1].stride * co
    alone = max(strides) == 1
    taps = weight if alone else _taps(weight, dims)
    c, ky, kx = (
        te.reduce_axis((0, e), name=m) for e, m in ((ci, "c"), (dims[0].taps, "y"), (dims[1].taps, "x"))
    )

    def element(b: te.Index, v: te.Index, i: te.Index, j: te.Index) -> te.Value:
        w = weight[c, v, kernel[0] - 1 - ky, kernel[1] - 1 - kx] if alone else taps[ky, kx, c, v]
        return te.sum(te.cast(w, wide) * te.cast(padded[b, c, i + ky, j + kx], wide), axis=[c, ky, kx])

    names = ["n", "o", "h", "w"]
    shape = (n, many, *(d.count for d in dims))
    if alone:
        return finished(shape, element, names, bias, activation, wide, out, 1, name)
    conv: te.Tensor = te.compute(shape, element, name="conv", names=names)

    def between(b: te.Index, o: te.Index, i: te.Index, j: te.Index) -> te.Value:
        (t, p), (u, q) = (
            ((r + d.shift) // d.stride, (r + d.shift) % d.stride) for r, d in zip((i, j), dims, strict=True)
        )
        return conv[b, (p * dims[1].stride + q) * co + o, t, u]

    last = bias is None and activation == "none" and out == wide
    y = te.compute((n, co, *outputs), between, name=name if last else "whole", names=names)
    return epilogue(y, bias, activation, axis=1, dtype=out, name=name, names=names)


def _padded(x: te.Tensor, dims: Sequence[Phases]) -> te.Tensor:
    """What the windows read of `x`, and zeros beside it."""
    before = [d.taps - 1 - d.first for d in dims]
    shape = (*x.shape[:2], *(d.count + d.taps - 1 for d in dims))

    def element(b: te.Index, ch: te.Index, *place: te.Index) -> te.Value:
        at = [r - k for r, k in zip(place, before, strict=True)]
        inside = [c for i, d in zip(at, dims, strict=True) for c in (i >= 0, i < d.size)]
        return te.if_then_else(te.all(*inside), x[(b, ch, *at)], zero(x.dtype))

    return te.compute(shape, element, name="pad", names=["n", "c", "h", "w"])


def _taps(weight: te.Tensor, dims: Sequence[Phases]) -> te.Tensor:
    """taps[ky, kx, ci, (p * stride + q) * co + o]: what windows of the phases p and q meet, from the last tap
    to the first, so that windows run forward; 0 where the kernel has no such tap."""
    ci, co = weight.shape[:2]
    across = dims[1].stride

    def element(ky: te.Index, kx: te.Index, c: te.Index, v: te.Index) -> te.Value:
        phases = v // (across * co), v // co % across
        at = [p + d.stride * (d.taps - 1 - k) for p, k, d in zip(phases, (ky, kx), dims, strict=True)]
        inside = [k < d.kernel for k, d in zip(at, dims, strict=True) if d.is_uneven]
        w = weight[(c, v % co, *at)]
        return te.if_then_else(te.all(*inside), w, zero(weight.dtype)) if inside else w

    shape = (dims[0].taps, dims[1].taps, ci, dims[0].stride * across * co)
    return te.compute(shape, element, name="taps", names=["y", "x", "c", "o"])
