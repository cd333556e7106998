"""What operators ask of their arguments. Each refusal is a TensorError that names the operator, the argument
and what would be right."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .. import te
from ..ir.dtype import DType
from ..te.errors import TensorError, tensor_error
from ..te.index import as_poly

Span = tuple[int, int]


def failure(op: str, reason: str) -> TensorError:
    """What to raise when `op` refuses its arguments."""
    return tensor_error(f"topi.{op}: {reason}")


def check_tensor(op: str, argument: str, x: object, ndim: int | Span | None = None) -> te.Tensor:
    """`x`, a tensor of so many dimensions (or of a number of them in a range)."""
    if not isinstance(x, te.Tensor):
        raise failure(op, f"{argument!r} must be a tensor, got {type(x).__name__}")
    if ndim is None:
        return x
    low, high = (ndim, ndim) if isinstance(ndim, int) else ndim
    if not low <= x.ndim <= high:
        many = f"{low}" if low == high else f"{low} to {high}"
        raise failure(op, f"{argument!r} must have {many} dimension{'' if many == '1' else 's'}, got {x!r}")
    return x


def check_floats(op: str, argument: str, x: te.Tensor) -> None:
    """`x` holds floats."""
    if not x.dtype.is_float:
        raise failure(op, f"{argument!r} must hold floats, got {x!r}")


def check_same_dtype(op: str, a: te.Tensor, b: te.Tensor) -> None:
    """Both hold one dtype."""
    if a.dtype != b.dtype:
        raise failure(op, f"{a!r} and {b!r} are of different dtypes")


def check_factors(op: str, a: te.Tensor, b: te.Tensor) -> None:
    """Both hold one dtype, or both integers of 8 bits: their products are added in int32 in any case."""
    if not (a.dtype.is_int and b.dtype.is_int and a.dtype.bits == b.dtype.bits == 8):
        check_same_dtype(op, a, b)


def check_choice(op: str, argument: str, value: object, choices: Sequence[str]) -> str:
    """`value`, one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise failure(op, f"{argument!r} must be one of {', '.join(choices)}, got {value!r}")
    return value


def same(a: Sequence[object], b: Sequence[object]) -> bool:
    """Whether extents are equal, whatever the sizes in them are."""
    return [as_poly(x, "an extent") for x in a] == [as_poly(x, "an extent") for x in b]


def check_vector(op: str, argument: str, x: object, extent: object, what: str) -> None:
    """`x`, if there is one, has one dimension of that extent: one element for each `what`."""
    if x is not None and not same(check_tensor(op, argument, x, 1).shape, (extent,)):
        raise failure(op, f"{argument!r} must have {extent} elements, one for each {what}, got {x!r}")


def check_fixed(op: str, argument: str, x: te.Tensor, dims: Sequence[int]) -> None:
    """Those dimensions of `x` are integers, not sizes that a call would tell."""
    for d in dims:
        if type(x.shape[d]) is not int:
            raise failure(op, f"dimension {d % x.ndim} of {argument!r} must be an integer, got {x!r}")


def count(extents: Sequence[int | te.Index], dtype: DType) -> te.Value | float:
    """The product of extents, as a number of `dtype` (a float)."""
    whole = math.prod(e for e in extents if isinstance(e, int))
    out: te.Value | float = float(whole)
    for e in extents:
        out = out if isinstance(e, int) else te.cast(e, dtype) * out
    return out


def integers(op: str, argument: str, value: object, count: int, low: int) -> tuple[int, ...]:
    """`count` integers of at least `low`; a single one stands for all."""
    entries = (value,) * count if type(value) is int else value
    if not isinstance(entries, Sequence) or isinstance(entries, str) or len(entries) != count:
        many = "an integer" if count == 1 else f"an integer or {count} integers"
        raise failure(op, f"{argument!r} must be {many}, got {value!r}")
    for e in entries:
        if type(e) is not int:
            raise failure(op, f"{argument!r} must hold integers, got {value!r}")
        if e < low:
            raise failure(op, f"{argument!r} must be at least {low}, got {value!r}")
    return tuple(entries)


def dimensions(op: str, argument: str, value: object, ndim: int) -> tuple[int, ...]:
    """Distinct dimensions of a tensor that has `ndim`, in ascending order; negative ones count from the end;
    None stands for all."""
    if value is None:
        return tuple(range(ndim))
    given = (value,) if type(value) is int else value
    if not isinstance(given, Sequence) or isinstance(given, str) or not given:
        raise failure(op, f"{argument!r} must be one dimension or several, got {value!r}")
    out: list[int] = []
    for d in given:
        if type(d) is not int or not -ndim <= d < ndim:
            raise failure(op, f"{argument!r} must hold dimensions from {-ndim} to {ndim - 1}, got {value!r}")
        out.append(d % ndim)
    if len(set(out)) != len(out):
        raise failure(op, f"{argument!r} holds a dimension twice: {value!r}")
    return tuple(sorted(out))
