"""Pooling: the largest or the mean element of each window."""

from __future__ import annotations

from .. import te
from ..ir.dtype import DType
from ..ir.rules import identity
from .checks import check_choice, check_fixed, check_tensor, failure, integers
from .conv import Extents
from .window import LAYOUTS, Window, pad_spatial, spatial_dims

POOLS = ("max", "avg")


def pool1d(
    x: te.Tensor,
    function: str,
    window: Extents,
    *,
    stride: Extents | None = None,
    pad: Extents = 0,
    dilation: Extents = 1,
    layout: str = "NCW",
    name: str = "Y",
) -> te.Tensor:
    """As pool2d, along one dimension; layouts NCW and NWC."""
    return _pool(1, x, function, window, stride, pad, dilation, layout, name)


def pool2d(
    x: te.Tensor,
    function: str,
    window: Extents,
    *,
    stride: Extents | None = None,
    pad: Extents = 0,
    dilation: Extents = 1,
    layout: str = "NCHW",
    name: str = "Y",
) -> te.Tensor:
    """The largest element (`max`) or the mean (`avg`) of each window over the height and width of `x`.

    `stride` is the window's extent by default; layouts are NCHW and NHWC. The padding does not count: it is
    below every element, and not part of a mean. Integers have the mean rounded down; sums accumulate as
    te.sum's do. The result is of the dtype of `x`.
    """
    return _pool(2, x, function, window, stride, pad, dilation, layout, name)


def pool3d(
    x: te.Tensor,
    function: str,
    window: Extents,
    *,
    stride: Extents | None = None,
    pad: Extents = 0,
    dilation: Extents = 1,
    layout: str = "NCDHW",
    name: str = "Y",
) -> te.Tensor:
    """As pool2d, in three dimensions; layouts NCDHW and NDHWC."""
    return _pool(3, x, function, window, stride, pad, dilation, layout, name)


def _pool(
    rank: int,
    x: te.Tensor,
    function: str,
    window: Extents,
    stride: Extents | None,
    pad: Extents,
    dilation: Extents,
    layout: str,
    name: str,
) -> te.Tensor:
    op = f"pool{rank}d"
    check_tensor(op, "x", x, rank + 2)
    check_choice(op, "function", function, POOLS)
    check_choice(op, "layout", layout, LAYOUTS[rank])
    check_fixed(op, "x", x, spatial_dims(layout))
    if x.dtype.is_bool:
        raise failure(op, f"'x' must hold numbers, got {x!r}")
    first = layout[1] == "C"
    n, c, *size = x.shape if first else (x.shape[0], x.shape[-1], *x.shape[1:-1])
    kernel = integers(op, "window", window, rank, 1)
    w = Window.of(op, size, kernel, kernel if stride is None else stride, pad, dilation)
    for k, p, d in zip(w.kernel, w.pad, w.dilation, strict=True):
        if p and d > 1:
            raise failure(op, "'dilation' and 'pad' do not go together along one dimension")
        if p >= k:
            raise failure(op, f"'pad' must be smaller than the window, got {pad!r} for {window!r}")
    below = te.Value(identity("max", x.dtype)) if function == "max" else None
    padded = pad_spatial(x, w.pad, layout, value=below)
    steps = w.axes()
    wide = x.dtype.accumulator if function == "avg" else x.dtype

    def element(*index: te.Index) -> te.Value:
        b, ch, *place = index if first else (index[0], index[-1], *index[1:-1])
        at = w.at(place, steps)
        p = padded[(b, ch, *at) if first else (b, *at, ch)]
        if function == "max":
            return te.max(p, axis=steps)
        total = te.sum(te.cast(p, wide), axis=steps)
        count = _count(w, place, wide)
        mean = total / count if wide.is_float else total // count
        return te.cast(mean, x.dtype)

    shape = (n, c, *w.outputs) if first else (n, *w.outputs, c)
    y: te.Tensor = te.compute(shape, element, name=name, names=["n", *layout[1:].lower()])
    return y


def _count(w: Window, place: list[te.Index], dtype: DType) -> te.Value:
    """How many elements of the input the window at `place` holds."""
    count: te.Index | int = 1
    for i, size, k, s, p in zip(place, w.size, w.kernel, w.stride, w.pad, strict=True):
        inside = te.minimum(i * s + k, size + p) - te.maximum(i * s, p) if p else k
        count = inside * count
    return te.cast(count, dtype)
