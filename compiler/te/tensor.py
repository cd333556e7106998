"""Tensors: placeholders, which the caller fills, and the results of te.compute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from ..arith import IntoPoly, Poly, Var, lower, poly, proven_negative
from ..ir.dtype import DType
from ..ir.expr import Buffer, Const, Expr, Load
from ..ir.limits import MAX_INTEGER
from ..ir.span import Span
from .errors import mismatch, parse_dtype, tensor_error
from .index import Extent, Index, as_poly
from .value import Read

MAX_NAME = 100


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """How a tensor comes about: `value` over the spatial variables `iters` (one per dimension) and the reduce
    variables `axes`.

    reducer: what combines the steps of a reduction, starting from `init`; None without axes.
    """

    iters: tuple[Var, ...]
    axes: tuple[Var, ...]
    value: Expr
    reducer: str | None
    init: Const | None
    inputs: tuple[Tensor, ...]
    span: Span | None


class Tensor:
    """A dense array. Indexing it gives a value; it has no operators of its own.

    shape: an integer for each dimension, or an Index over sizes (te.var).
    """

    __slots__ = ("buffer", "dtype", "name", "shape", "stage")

    def __init__(
        self,
        name: str,
        shape: tuple[IntoPoly, ...],
        dtype: DType,
        stage: Stage | None,
        *,
        constant: bool = False,
    ) -> None:
        extents = tuple(map(poly, shape))
        self.name = name
        self.shape: tuple[Any, ...] = tuple(Extent(p) if p.const is None else p.const for p in extents)
        self.dtype = dtype
        self.stage = stage
        self.buffer = Buffer(name, extents, dtype, constant=constant)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __repr__(self) -> str:
        return f"{self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]"

    def __getitem__(self, indices: Any) -> Read:
        given = indices if isinstance(indices, tuple) else (indices,)
        if len(given) != len(self.shape):
            raise tensor_error(
                f"{self.name!r} has {_count(len(self.shape), 'dimension')}, got {_count(len(given), 'index')}"
            )
        where = f"an index of {self.name!r}"
        return Read(self, Load(self.buffer, tuple(as_poly(i, where) for i in given)))

    __iter__ = None
    __array_ufunc__ = None

    def _no_operators(self, *_: object) -> NoReturn:
        raise mismatch(f"the tensor {self.name!r} has no operators; index it inside of te.compute")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _no_operators
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __neg__ = _no_operators
    __lt__ = __le__ = __gt__ = __ge__ = _no_operators


def _count(n: int, noun: str) -> str:
    plural = {"index": "indices"}.get(noun, noun + "s")
    return f"1 {noun}" if n == 1 else f"{n} {plural}"


def check_name(name: object, what: str) -> str:
    """A name that can stand in a printed program."""
    if not isinstance(name, str) or not name.isidentifier() or len(name) > MAX_NAME:
        raise tensor_error(
            f"{what}: a name must be an identifier of at most {MAX_NAME} characters, got {name!r}"
        )
    return name


def check_shape(shape: object, what: str) -> tuple[Poly, ...]:
    """Extents: integers of at least 1, or expressions over sizes that are at least 0 whatever these are. A
    single one is one dimension."""
    if isinstance(shape, str) or not isinstance(shape, Sequence):
        shape = (shape,)
    return tuple(
        check_extent(as_poly(extent, f"{what}: the extent of dimension {d}"), what, f"of dimension {d}")
        for d, extent in enumerate(shape)
    )


def check_extent(p: Poly, what: str, of: str) -> Poly:
    """An extent, of which the message says what and `of` which dimension or axis it is."""
    if p.const is not None:
        if p.const < 1:
            raise tensor_error(f"{what}: the extent {of} must be at least 1, got {p.const}")
        if p.const >= MAX_INTEGER:
            raise tensor_error(f"{what}: the extent {of} must be below 2**53, got {p.const}")
        return p
    if p.vars():
        raise tensor_error(f"{what}: the extent {of} must be an integer or made of te.var sizes, got {p!r}")
    if not proven_negative(-lower(p) - 1):
        advice = f"te.maximum({p!r}, 0) is 0 there"
        raise tensor_error(f"{what}: the extent {of}, {p!r}, may be below 0; {advice}")
    return p


def placeholder(
    shape: Sequence[int | Index] | int | Index,
    dtype: str | DType = "float32",
    name: str = "placeholder",
    *,
    constant: bool = False,
) -> Tensor:
    """A tensor that the caller hands in.

    constant: its contents are known before the calls and the same for many of them, as a network's weights
    are. What a schedule makes of constants alone (`compute_ahead`) is then made once, where `build` is given
    them. Raises TensorError for a constant with a size in its shape.
    """
    check_name(name, "te.placeholder")
    what = f"te.placeholder {name!r}"
    extents = check_shape(shape, what)
    if not isinstance(constant, bool):
        advice = "; build(constants=…) takes the contents" if hasattr(constant, "shape") else ""
        raise tensor_error(f"{what}: constant is True or False, got {type(constant).__name__}{advice}")
    for p in extents:
        if constant and p.sizes():
            raise tensor_error(f"{what}: the extents of a constant are integers, got {p!r}")
    return Tensor(name, extents, parse_dtype(dtype), None, constant=constant)
