"""The sizes of a program: each must be known from the arrays of a call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..arith import Poly, Size
from ..ir.span import Span
from ..ir.visit import indices_of
from .errors import tensor_error
from .tensor import Tensor


def check_sizes(params: Sequence[Tensor], stages: Sequence[Tensor], what: str) -> tuple[str, ...]:
    """The names of the sizes. Raises TensorError, at the line of the stage that uses it, for one that is no
    dimension of a parameter by itself, and for two sizes of one name."""
    alone = {p.atom for t in params for p in t.buffer.shape}
    names: dict[str, Size] = {}
    for p, t, span in _uses(params, stages):
        for s in p.sizes():
            if names.setdefault(s.name, s) is not s:
                raise tensor_error(
                    f"{what}: two sizes are named {s.name!r}; make one te.var and use it in both places, "
                    "or give them different names",
                    span,
                )
            if s not in alone:
                raise tensor_error(
                    f"{what}: the size {s.name!r}, which {t.name!r} uses, is no dimension of a parameter by "
                    f"itself, so that a call could not tell it; make {s.name!r} a dimension of an input or "
                    "output",
                    span,
                )
    return tuple(names)


def _uses(params: Sequence[Tensor], stages: Sequence[Tensor]) -> Iterator[tuple[Poly, Tensor, Span | None]]:
    for t in (*params, *(t for t in stages if t not in params)):
        yield from ((p, t, t.stage.span if t.stage is not None else None) for p in t.buffer.shape)
    for t in stages:
        assert t.stage is not None
        for p in (*(v.extent for v in t.stage.axes), *indices_of(t.stage.value)):
            yield p, t, t.stage.span
