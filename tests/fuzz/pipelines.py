"""Random small pipelines as people write them: stencils, gathers at clamped indices, transpositions, padding,
sums, and several stages that read one another."""

from __future__ import annotations

import random
from collections.abc import Callable

from tilewright.compiler import te
from tilewright.compiler.ir import PrimFunc

__all__ = ["KINDS", "pipeline"]

Stage = Callable[["Pipeline", te.Tensor], te.Tensor]

LEAST, MOST = 3, 13
"""Rows and columns of a stage: what is smaller or larger is turned down, and another stage is drawn."""


class Pipeline:
    """Stages so far, each of two axes."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.dtype = rng.choice(["int32", "float32", "int32", "float64"])
        shape = rng.randint(5, 12), rng.randint(5, 12)
        self.input = te.placeholder(shape, self.dtype, name="A")
        self.stages: list[te.Tensor] = [self.input]
        self.kinds: list[str] = []

    def named(self) -> str:
        return f"S{len(self.stages)}"

    def grow(self) -> None:
        """Another stage of some kind, of the last one or of an earlier one."""
        kind = self.rng.choice(list(KINDS))
        of = self.stages[-1] if self.rng.random() < 0.7 else self.rng.choice(self.stages)
        made = KINDS[kind](self, of)
        if all(LEAST <= extent <= MOST for extent in _shape(made)):
            self.stages.append(made)
            self.kinds.append(kind)


def pipeline(seed: int) -> tuple[PrimFunc, list[str]]:
    """A program and the kinds of its stages; the same for the same seed."""
    drawn = Pipeline(random.Random(seed))
    wanted = drawn.rng.randint(1, 5)
    while len(drawn.kinds) < wanted:
        drawn.grow()
    outputs = [drawn.stages[-1]]
    read = drawn.stages[1:-1]
    if read and drawn.rng.random() < 0.2:
        outputs.insert(0, drawn.rng.choice(read))
    return te.create_prim_func([drawn.input, *outputs], name=f"pipeline_{seed}"), drawn.kinds


def _shape(tensor: te.Tensor) -> tuple[int, int]:
    rows, columns = (int(extent) for extent in tensor.shape)
    return rows, columns


def _stencil(p: Pipeline, t: te.Tensor) -> te.Tensor:
    """Neighbours within the array, which shrinks."""
    rows, columns = _shape(t)
    di, dj = p.rng.randint(0, 2), p.rng.randint(0, 2)
    taps = [(p.rng.randint(0, di), p.rng.randint(0, dj), p.rng.randint(-2, 3)) for _ in range(3)]

    def element(i: te.Index, j: te.Index) -> te.Value:
        total = t[i, j]
        for a, b, factor in taps:
            total = total + t[i + a, j + b] * factor
        return total

    return te.compute((max(1, rows - di), max(1, columns - dj)), element, name=p.named())


def _bordered(p: Pipeline, t: te.Tensor) -> te.Tensor:
    """A stencil whose border repeats the edge."""
    rows, columns = _shape(t)
    a, b = p.rng.randint(-2, 2), p.rng.randint(-2, 2)
    return te.compute(
        (rows, columns),
        lambda i, j: t[te.clamp(i + a, 0, rows - 1), te.clamp(j + b, 0, columns - 1)] - t[i, j],
        name=p.named(),
    )


def _gathered(p: Pipeline, t: te.Tensor) -> te.Tensor:
    """Elements at strided, turned and clamped places."""
    rows, columns = _shape(t)
    stride, shift, turned = p.rng.randint(1, 3), p.rng.randint(-4, 4), p.rng.random() < 0.5

    def element(i: te.Index, j: te.Index) -> te.Value:
        column = (columns - 1 - j if turned else j) + shift
        return t[te.clamp(i * stride + shift, 0, rows - 1), te.clamp(column, 0, columns - 1)]

    return te.compute((p.rng.randint(3, 12), columns), element, name=p.named())


def _transposed(p: Pipeline, t: te.Tensor) -> te.Tensor:
    rows, columns = _shape(t)
    return te.compute((columns, rows), lambda i, j: t[j, i], name=p.named())


def _padded(p: Pipeline, t: te.Tensor) -> te.Tensor:
    """Zeros around it."""
    rows, columns = _shape(t)
    top, left = p.rng.randint(0, 2), p.rng.randint(0, 2)
    return te.compute(
        (rows + 2 * top, columns + 2 * left),
        lambda i, j: te.if_then_else(
            te.all(i >= top, i < rows + top, j >= left, j < columns + left),
            t[i - top, j - left],
            te.const(0, p.dtype),
        ),
        name=p.named(),
    )


def _resampled(p: Pipeline, t: te.Tensor) -> te.Tensor:
    """Every other row, or every column twice."""
    rows, columns = _shape(t)
    if p.rng.random() < 0.5:
        return te.compute((max(1, rows // 2), columns), lambda i, j: t[i * 2, j], name=p.named())
    return te.compute((rows, columns * 2), lambda i, j: t[i, j // 2], name=p.named())


def _reshaped(p: Pipeline, t: te.Tensor) -> te.Tensor:
    """The same elements in rows of another length."""
    rows, columns = _shape(t)
    return te.compute(
        (columns, rows),
        lambda i, j: t[(i * rows + j) // columns, (i * rows + j) % columns],
        name=p.named(),
    )


def _pointwise(p: Pipeline, t: te.Tensor) -> te.Tensor:
    functions = [
        lambda x: x * 3 - 1,
        lambda x: te.maximum(x, 0),
        lambda x: te.if_then_else(x > 1, x - 1, 2 - x),
        lambda x: te.abs(x) + 1,
    ]
    f = p.rng.choice(functions)
    return te.compute(_shape(t), lambda i, j: f(t[i, j]), name=p.named())


def _joined(p: Pipeline, t: te.Tensor) -> te.Tensor:
    """With another stage, where both are."""
    other = p.rng.choice(p.stages)
    shape = tuple(map(min, _shape(t), _shape(other)))
    return te.compute(shape, lambda i, j: t[i, j] - other[i, j] * 2, name=p.named())


def _summed(p: Pipeline, t: te.Tensor) -> te.Tensor:
    """Each row less its sum, or its greatest element."""
    rows, columns = _shape(t)
    k = te.reduce_axis((0, columns), name="k")
    reducer = p.rng.choice([te.sum, te.max])
    r = te.compute((rows,), lambda i: reducer(t[i, k], axis=k), name=f"{p.named()}r")
    return te.compute((rows, columns), lambda i, j: t[i, j] * 2 - r[i], name=p.named())


def _multiplied(p: Pipeline, t: te.Tensor) -> te.Tensor:
    """With its own transpose."""
    rows, columns = _shape(t)
    k = te.reduce_axis((0, columns), name="k")
    return te.compute((rows, rows), lambda i, j: te.sum(t[i, k] * t[j, k], axis=k), name=p.named())


def _pooled(p: Pipeline, t: te.Tensor) -> te.Tensor:
    """Windows of 2 by 3."""
    rows, columns = _shape(t)
    u, v = te.reduce_axis((0, 2), name="u"), te.reduce_axis((0, 3), name="v")
    stride = p.rng.randint(1, 2)
    return te.compute(
        (max(1, (rows - 2) // stride + 1), max(1, columns - 2)),
        lambda i, j: te.max(t[i * stride + u, j + v], axis=[u, v]),
        name=p.named(),
    )


KINDS: dict[str, Stage] = {
    "stencil": _stencil,
    "border": _bordered,
    "gather": _gathered,
    "transpose": _transposed,
    "padding": _padded,
    "resample": _resampled,
    "reshape": _reshaped,
    "pointwise": _pointwise,
    "join": _joined,
    "sum": _summed,
    "product": _multiplied,
    "pool": _pooled,
}
