"""Operators over the rows of a matrix: softmax and layer normalisation, along the last dimension."""

from __future__ import annotations

from .. import te
from .checks import check_floats, check_tensor, check_vector, count


def softmax(x: te.Tensor, *, name: str = "Y") -> te.Tensor:
    """exp(x - max) / Σ exp(x - max) of each row, in four stages. Of float16 and bfloat16, exp and what
    follows are in float32."""
    check_tensor("softmax", "x", x, (1, 8))
    check_floats("softmax", "x", x)
    *rows, n = x.shape
    wide = x.dtype.accumulator
    names = _row_names(len(rows))
    k = te.reduce_axis((0, n), name="k")
    top = te.compute(rows, lambda *i: te.max(x[(*i, k)], axis=k), name="row_max", names=names)
    e = te.compute(
        x.shape,
        lambda *i: te.exp(te.cast(x[i], wide) - te.cast(top[i[:-1]], wide)),
        name="e",
        names=[*names, "j"],
    )
    k = te.reduce_axis((0, n), name="k")
    total = te.compute(rows, lambda *i: te.sum(e[(*i, k)], axis=k), name="row_sum", names=names)
    return te.compute(
        x.shape, lambda *i: te.cast(e[i] / total[i[:-1]], x.dtype), name=name, names=[*names, "j"]
    )


def layer_norm(
    x: te.Tensor,
    gamma: te.Tensor | None = None,
    beta: te.Tensor | None = None,
    *,
    epsilon: float = 1e-5,
    name: str = "Y",
) -> te.Tensor:
    """(x - mean) · rsqrt(variance + epsilon) · gamma + beta of each row, in three stages; the variance is the
    mean of (x - mean)². Of float16 and bfloat16, everything is in float32 until the end."""
    check_tensor("layer_norm", "x", x, (1, 8))
    check_floats("layer_norm", "x", x)
    *rows, n = x.shape
    check_vector("layer_norm", "gamma", gamma, n, "column")
    check_vector("layer_norm", "beta", beta, n, "column")
    wide = x.dtype.accumulator
    names = _row_names(len(rows))
    part = 1.0 / count([n], wide)
    k = te.reduce_axis((0, n), name="k")
    total = te.compute(
        rows, lambda *i: te.sum(te.cast(x[(*i, k)], wide), axis=k), name="row_sum", names=names
    )

    def centred(i: tuple[te.Index, ...], j: te.Index) -> te.Value:
        return te.cast(x[(*i, j)], wide) - total[i] * part  # type: ignore[no-any-return]

    m = te.reduce_axis((0, n), name="k")
    squares = te.compute(rows, lambda *i: te.sum(centred(i, m) ** 2, axis=m), name="row_squares", names=names)

    def element(*index: te.Index) -> te.Value:
        i, j = index[:-1], index[-1]
        v = centred(i, j) * te.rsqrt(squares[i] * part + epsilon)
        if gamma is not None:
            v = v * te.cast(gamma[j], wide)
        if beta is not None:
            v = v + te.cast(beta[j], wide)
        return te.cast(v, x.dtype)

    return te.compute(x.shape, element, name=name, names=[*names, "j"])


def _row_names(count: int) -> list[str]:
    return ["i"] if count == 1 else [f"i{d}" for d in range(count)]
