"""te.compute: tensors from a function of their indices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

from ..arith import Var, poly
from ..ir.span import user_span
from .arity import parameter_names
from .errors import mismatch, tensor_error
from .index import Index
from .stages import Stages
from .tensor import Tensor, check_name, check_shape
from .value import Value, found


@overload
def compute(
    shape: Sequence[int | Index] | int | Index,
    fcompute: Callable[..., tuple[Value, ...]],
    name: str = ...,
    names: Sequence[str] | None = ...,
) -> tuple[Tensor, ...]: ...
@overload
def compute(
    shape: Sequence[int | Index] | int | Index,
    fcompute: Callable[..., Value],
    name: str = ...,
    names: Sequence[str] | None = ...,
) -> Tensor: ...
def compute(
    shape: Sequence[int | Index] | int | Index,
    fcompute: Callable[..., Any],
    name: str = "compute",
    names: Sequence[str] | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """The tensor whose element at (i, j, …) is `fcompute(i, j, …)`. `names` are those of the loops; by
    default the function's own.

    A function that returns a tuple gives a tuple of tensors of this shape, named `{name}_v0`, `{name}_v1`, …;
    each is a stage of its own, and what they have in common is computed once where it is a reduction. A
    reduction that is the whole result becomes a block with an init; one inside of a larger expression becomes
    a tensor of its own, named after this one.

    Raises TensorError or TypeMismatch at the user's line: a function with another number of arguments than
    the shape has dimensions, a result without a dtype, a variable or reduce axis used outside of its scope, a
    read that may be out of range.
    """
    span = user_span()
    check_name(name, "te.compute")
    what = f"te.compute {name!r}"
    extents = check_shape(shape, what)
    given = parameter_names(fcompute, len(extents), what)
    if names is not None:
        if len(names) != len(extents):
            raise tensor_error(f"{what}: {len(names)} names for {len(extents)} dimensions")
        given = [check_name(n, what) for n in names]
    iters = tuple(Var(n, e) for n, e in zip(given, extents, strict=True))
    result = fcompute(*(Index(poly(v)) for v in iters))
    if not isinstance(result, tuple):
        if not isinstance(result, Value):
            raise mismatch(f"{what}: the function must return a value, got {found(result)}")
        return Stages(iters, span, {name: result}).outputs()[0]
    if not result:
        raise tensor_error(f"{what}: the function must return a value, got an empty tuple")
    for n, r in enumerate(result):
        if not isinstance(r, Value):
            raise mismatch(f"{what}: entry {n} of the tuple must be a value, got {found(r)}")
    return Stages(iters, span, {f"{name}_v{n}": r for n, r in enumerate(result)}).outputs()
