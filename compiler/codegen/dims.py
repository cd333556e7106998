"""Shapes and byte counts of kernels as plain data."""

from __future__ import annotations

from ..arith import Fn, Poly, Size, poly
from ..ir import Buffer
from ..runtime.dims import Dim


def dim_of(p: Poly) -> Dim:
    """A polynomial over sizes. ValueError where something else stands in it."""
    if p.const is not None:
        return p.const
    return tuple(sorted(((c, *map(_atom_of, m)) for m, c in p.terms.items()), key=repr))


def _atom_of(a: object) -> object:
    if type(a) is Size:
        return a.name
    if type(a) is Fn:
        return a.op, dim_of(a.a), dim_of(a.b)
    raise ValueError(f"{a!r} is no size")


def shape_of(x: Buffer) -> tuple[Dim, ...]:
    """The buffer's extents."""
    return tuple(map(dim_of, x.shape))


def bytes_of(x: Buffer) -> Dim:
    """The bytes that the buffer takes."""
    size = poly(x.dtype.bytes)
    for extent in x.shape:
        size = size * extent
    return dim_of(size)
