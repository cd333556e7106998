"""Shapes and byte counts of kernels as plain data."""

from __future__ import annotations

from ..arith import Fn, Poly, Size, poly
from ..ir import Buffer, PrimFunc, loads
from ..runtime import PackInfo, ParamInfo, WorkspaceInfo
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


def params_of(func: PrimFunc) -> tuple[ParamInfo, ...]:
    """What a caller passes."""
    outputs = set(func.outputs)
    return tuple(ParamInfo(p.name, str(p.dtype), shape_of(p), p in outputs, p.constant) for p in func.params)


def workspace_of(x: Buffer, nbytes: Dim | None = None) -> WorkspaceInfo:
    """What a call is given for an allocated buffer: so many bytes, or one array's."""
    return WorkspaceInfo(bytes_of(x) if nbytes is None else nbytes, x.constant)


def pack_of(
    kernel: PrimFunc, symbol: str, params: tuple[ParamInfo, ...], workspaces: tuple[WorkspaceInfo, ...]
) -> PackInfo:
    """The function that runs before the calls of a kernel, of which the code generator gave these."""
    read = {x.buffer for _, b in kernel.blocks() for x in loads(b.value)}
    consumed = tuple(p.name for p in kernel.constants if p not in read)
    return PackInfo(symbol, params, tuple(w.bytes for w in workspaces if isinstance(w.bytes, int)), consumed)
