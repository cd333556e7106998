"""Windows that move over the spatial dimensions of a tensor: where they lie, how many there are, the padding
around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .. import te
from ..ir.dtype import DType
from ..te.index import ReduceAxis
from .checks import failure, integers

#: The spatial dimensions of each layout; channels come before or behind them.
LAYOUTS: dict[int, tuple[str, str]] = {1: ("NCW", "NWC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}
#: Names of the steps within a window, along depth, height and width.
STEPS = ("z", "y", "x")


@dataclass(frozen=True, slots=True)
class Window:
    """Along each spatial dimension: the size of the input, the extent of the kernel, and how it moves."""

    size: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    pad: tuple[int, ...]
    dilation: tuple[int, ...]

    @staticmethod
    def of(
        op: str, size: Sequence[int], kernel: Sequence[int], stride: object, pad: object, dilation: object
    ) -> Window:
        """A window from what a user gave: one integer for all dimensions, or one for each. Raises TensorError
        where it does not fit into the padded input."""
        n = len(size)
        w = Window(
            tuple(size),
            tuple(kernel),
            integers(op, "stride", stride, n, 1),
            integers(op, "pad", pad, n, 0),
            integers(op, "dilation", dilation, n, 1),
        )
        if min(w.outputs) < 1:
            k, s = (" x ".join(map(str, x)) for x in (kernel, size))
            raise failure(
                op, f"a kernel of {k} does not fit into {s} with the padding {', '.join(map(str, w.pad))}"
            )
        return w

    @property
    def outputs(self) -> tuple[int, ...]:
        """How many places the window has along each dimension; below 1 where it does not fit."""
        every = zip(self.size, self.kernel, self.stride, self.pad, self.dilation, strict=True)
        return tuple((size + 2 * p - d * (k - 1) - 1) // s + 1 for size, k, s, p, d in every)

    def axes(self) -> list[ReduceAxis]:
        """A reduce axis for each dimension of the kernel."""
        names = STEPS[-len(self.kernel) :]
        return [te.reduce_axis((0, e), name=m) for e, m in zip(self.kernel, names, strict=True)]

    def at(self, place: Sequence[te.Index], step: Sequence[te.Index]) -> list[te.Index]:
        """Where in the padded input the window at `place` reads in a step."""
        every = zip(place, step, self.stride, self.dilation, strict=True)
        return [i * s + k * d for i, k, s, d in every]


def spatial_dims(layout: str) -> tuple[int, ...]:
    """Where the spatial dimensions of a layout stand."""
    return tuple(d for d, letter in enumerate(layout) if letter in "DHW")


def pad_spatial(
    x: te.Tensor, pad: Sequence[int], layout: str, *, value: te.Value | None = None, name: str = "pad"
) -> te.Tensor:
    """`x` with so many zeros (or `value`) on both sides of each spatial dimension; `x` itself for none."""
    if not any(pad):
        return x
    dims = spatial_dims(layout)
    fill = zero(x.dtype) if value is None else value
    shape = list(x.shape)
    for d, p in zip(dims, pad, strict=True):
        shape[d] += 2 * p

    def element(*index: te.Index) -> te.Value:
        at = list(index)
        conditions = []
        for d, p in zip(dims, pad, strict=True):
            at[d] = index[d] - p
            conditions += [index[d] >= p, index[d] < x.shape[d] + p]
        return te.if_then_else(te.all(*conditions), x[tuple(at)], fill)

    return te.compute(shape, element, name=name, names=["n", *layout[1:].lower()])


def zero(dtype: DType) -> te.Value:
    """0 of a number's dtype."""
    return te.const(0.0 if dtype.is_float else 0, dtype)
