"""Matrix products."""

from __future__ import annotations

from typing import Literal

from .. import te
from ..ir.dtype import DType
from ..te.errors import parse_dtype
from .activation import ACTIVATIONS, epilogue
from .checks import check_choice, check_factors, check_tensor, check_vector, failure, same


def accumulation(dtype: DType, out: str | DType | None) -> tuple[DType, DType]:
    """(dtype to multiply and add in, dtype of the result): float16 and bfloat16 add in float32 and are
    rounded once at the end; integers below 32 bits add in int32, which is also their result unless `out` says
    otherwise."""
    wide = dtype.accumulator
    if out is not None:
        return wide, parse_dtype(out)
    return wide, wide if dtype.is_int else dtype


def matmul(
    a: te.Tensor,
    b: te.Tensor,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    out_dtype: str | DType | None = None,
    name: str = "C",
) -> te.Tensor:
    """C[…, m, n] = Σ_k A[…, m, k] · B[…, k, n]; leading dimensions are batches and must agree. `transpose_*`:
    that operand is stored with its last two dimensions swapped."""
    check_tensor("matmul", "a", a, (2, 8))
    check_tensor("matmul", "b", b, (2, 8))
    check_factors("matmul", a, b)
    if not same(a.shape[:-2], b.shape[:-2]):
        raise failure("matmul", f"the batch dimensions of {a!r} and {b!r} differ")
    rows, inner = a.shape[-2:][::-1] if transpose_a else a.shape[-2:]
    inner_b, columns = b.shape[-2:][::-1] if transpose_b else b.shape[-2:]
    if not same([inner], [inner_b]):
        raise failure("matmul", f"{a!r} has {inner} columns and {b!r} has {inner_b} rows")
    wide, out = accumulation(a.dtype, out_dtype)
    k = te.reduce_axis((0, inner), name="k")
    batches = [f"b{d}" if a.ndim > 3 else "b" for d in range(a.ndim - 2)]

    def element(*index: te.Index) -> te.Value:
        *batch, i, j = index
        x = a[(*batch, k, i) if transpose_a else (*batch, i, k)]
        y = b[(*batch, j, k) if transpose_b else (*batch, k, j)]
        return te.sum(te.cast(x, wide) * te.cast(y, wide), axis=k)

    shape, names = (*a.shape[:-2], rows, columns), [*batches, "i", "j"]
    product = te.compute(shape, element, name=name if out == wide else f"{name}_acc", names=names)
    return epilogue(product, dtype=out, name=name, names=names)


def dense(
    x: te.Tensor,
    weight: te.Tensor,
    bias: te.Tensor | None = None,
    *,
    weights: Literal["kn", "nk"] = "kn",
    activation: str = "none",
    out_dtype: str | DType | None = None,
    name: str = "Y",
) -> te.Tensor:
    """Y[m, n] = activation(Σ_k X[m, k] · W[k, n] + B[n]); with weights="nk", W is stored as [n, k]."""
    check_tensor("dense", "x", x, 2)
    check_tensor("dense", "weight", weight, 2)
    check_factors("dense", x, weight)
    check_choice("dense", "weights", weights, ("kn", "nk"))
    check_choice("dense", "activation", activation, ACTIVATIONS)
    inner, columns = weight.shape if weights == "kn" else weight.shape[::-1]
    if not same([inner], x.shape[1:]):
        raise failure("dense", f"{x!r} has {x.shape[1]} columns and {weight!r} takes {inner}")
    check_vector("dense", "bias", bias, columns, "column")
    wide, out = accumulation(x.dtype, out_dtype)
    alone = bias is None and activation == "none" and out == wide
    product = matmul(x, weight, transpose_b=weights == "nk", out_dtype=wide, name=name if alone else "dense")
    return epilogue(product, bias, activation, dtype=out, name=name, names=["i", "j"])
