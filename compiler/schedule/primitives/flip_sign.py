"""flip_sign: a factor of 8 bits with the other sign, for dot products that take one of each."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...arith import Atom, Poly, Var, poly, substitute
from ...ir import (
    INT32,
    Binary,
    Block,
    Buffer,
    Cast,
    Const,
    DType,
    Expr,
    For,
    IterKind,
    Load,
    PrimFunc,
    Stmt,
    buffers_read,
    nest,
)
from ..errors import ScheduleError
from ..find import find_block, readers, root_of, writers
from .block_layout import check_own_nest
from .reindex import nest_over, spatial_iters

_FLIPPED = {DType("int", 8): DType("uint", 8), DType("uint", 8): DType("int", 8)}
#: The bits of a number whose sign bit alone is set.
_SIGN = {DType("int", 8): -128, DType("uint", 8): 128}


@dataclass(frozen=True, slots=True, eq=False)
class _Product:
    """`own + int32(x) * int32(y)` in a nest of its own; x is the factor to flip."""

    block: Block
    chain: tuple[For, ...]
    own: Load
    x: Load
    y: Load
    x_first: bool


def check_flip_sign(func: PrimFunc, block: Block, path: tuple[For, ...], index: int) -> _Product:
    """A sum of products of two factors in int32, alone in an unscheduled nest; the factor has 8 bits, and the
    other one moves with a spatial variable."""

    def refuse(reason: str) -> ScheduleError:
        return ScheduleError("flip_sign", reason, func, block)

    own = check_own_nest(func, block, path, "flip_sign")
    if len(own.chain) != len(path):
        raise refuse(f"{block.name!r} stands in loops that are not its own; do this before it is moved")
    read = buffers_read(block)
    if type(index) is not int or not 0 <= index < len(read):
        names = ", ".join(f"{n}: {b.name}" for n, b in enumerate(read)) or "none"
        raise refuse(f"{block.name!r} has no read buffer {index}; it reads {names}")
    v = block.value
    if not block.is_reduction or type(block.init) is not Const or type(v) is not Binary or v.op != "add":
        raise refuse(f"{block.name!r} is no sum that begins with a constant")
    if writers(func, block.buffer) != [block]:
        raise refuse(f"{block.buffer.name} is written by more than one block")
    term = v.b
    factors = [_factor(term.a), _factor(term.b)] if type(term) is Binary and term.op == "mul" else []
    if type(v.a) is not Load or None in factors or len(factors) != 2 or v.dtype != INT32:
        raise refuse(f"{block.name!r} does not add up products of two reads in int32")
    x, y = sorted((f for f in factors if f is not None), key=lambda f: f.buffer is not read[index])
    if x.dtype not in _FLIPPED:
        raise refuse(f"{x.buffer.name} holds {x.dtype}; int8 becomes uint8, and uint8 int8")
    if x.buffer is y.buffer:
        raise refuse(f"both factors are of {x.buffer.name}")
    spatial = spatial_iters(block)
    if len(block.indices) != len(spatial) or {p.atom for p in block.indices} != set(spatial):
        raise refuse(f"{block.name!r} does not write {block.buffer.name} at its spatial variables")
    if not any(it in i.vars() for i in y.indices for it in spatial):
        raise refuse(f"{y.buffer.name} moves with no spatial variable of {block.name!r}; flip it instead")
    for r in readers(func, block.buffer):
        if root_of(func, r.name) <= root_of(func, block.name):
            raise refuse(f"{r.name!r} reads {block.buffer.name} before all of it is written")
    return _Product(block, own.chain, v.a, x, y, x is factors[0])


def _factor(e: Expr) -> Load | None:
    return e.a if type(e) is Cast and type(e.a) is Load else None


def flip_sign(func: PrimFunc, name: str, index: int) -> tuple[PrimFunc, tuple[str, str]]:
    """Takes the block's `index`-th read buffer, of int8, as uint8 that is larger by 128, and takes off at the
    end what that adds; the other way round for a buffer of uint8. Sums in int32 wrap around, so that the
    result is the same in every case. Of the instructions for dot products most take one factor of each sign.

    before: `C[i, j] += int32(A[i, k]) * int32(B[k, j])`
    after `flip_sign(C, 0)`: `C_excess[j] += int32(uint8(128)) * int32(B[k, j])`,
    `C_flipped[i, j] += int32(uint8(A[i, k]) ^ uint8(128)) * int32(B[k, j])`, then
    `C[i, j] = C_flipped[i, j] - C_excess[j]`

    Returns the program and the names of the blocks that make the excess and that take it off. Refused: what
    is no such sum in an unscheduled nest, a factor of another dtype, one whose other factor does not move
    with a spatial variable.
    """
    path, block = find_block(func, name, "flip_sign")
    p = check_flip_sign(func, block, path, index)
    excess, excess_nest = _excess(func, p)
    dtype = _FLIPPED[p.x.dtype]
    taken = replace(func, allocs=(*func.allocs, excess))
    flipped = Buffer(
        taken.fresh_buffer_name(f"{block.buffer.name}_flipped"), block.buffer.shape, block.buffer.dtype
    )
    factor = Binary("xor", Cast(dtype, p.x), Const(_SIGN[dtype], dtype))

    def put(x: Load) -> Expr:
        return Load(flipped, x.indices) if x.buffer is block.buffer else x

    x, y = Cast(INT32, factor), Cast(INT32, p.y)
    value = Binary("add", put(p.own), Binary("mul", *((x, y) if p.x_first else (y, x))))
    main: tuple[Stmt, ...] = (replace(block, buffer=flipped, value=value),)
    for f in reversed(p.chain):
        main = (replace(f, body=main),)
    finish_name = func.fresh_block_name(f"{name}_finish")
    iters = [Var(v.name, v.extent) for i in block.indices if isinstance(v := i.atom, Var)]
    m: dict[Atom, Poly] = {i.atom: poly(v) for i, v in zip(block.indices, iters, strict=True) if i.atom}
    at = tuple(poly(v) for v in iters)
    off = Load(excess, tuple(m[it] for it in _kept(p)))
    finish = nest_over(finish_name, iters, Load(block.buffer, at), Binary("sub", Load(flipped, at), off))
    root = root_of(func, name)
    body = (*func.body[:root], *excess_nest, *main, *finish, *func.body[root + 1 :])
    names = func.fresh_block_name(f"{name}_excess"), finish_name
    return replace(func, allocs=(*func.allocs, excess, flipped), body=body), names


def _kept(p: _Product) -> list[Var]:
    """The spatial variables that move the other factor."""
    return [it for it in spatial_iters(p.block) if any(it in i.vars() for i in p.y.indices)]


def _excess(func: PrimFunc, p: _Product) -> tuple[Buffer, tuple[Stmt, ...]]:
    """What the flipped sum is too large by, for each place of the other factor: 128 or -128 times its sum."""
    block, kept = p.block, _kept(p)
    buffer = Buffer(
        func.fresh_buffer_name(f"{block.buffer.name}_excess"), tuple(it.extent for it in kept), INT32
    )
    pairs = zip(block.iters, block.kinds, strict=True)
    old = [*kept, *(it for it, kind in pairs if kind is IterKind.REDUCE)]
    iters = [Var(it.name, it.extent) for it in old]
    loops = [Var(it.name, it.extent) for it in old]
    m: dict[Atom, Poly] = {it: poly(v) for it, v in zip(old, iters, strict=True)}
    at = tuple(m[it] for it in kept)
    dtype = _FLIPPED[p.x.dtype]
    y = Load(p.y.buffer, tuple(substitute(i, m) for i in p.y.indices))
    product = Binary("mul", Cast(INT32, Const(_SIGN[dtype], dtype)), Cast(INT32, y))
    made = Block(
        func.fresh_block_name(f"{block.name}_excess"), tuple(iters),
        (*(IterKind.SPATIAL for _ in kept), *(IterKind.REDUCE for _ in old[len(kept) :])),
        tuple(poly(v) for v in loops), buffer, at,
        Binary("add", Load(buffer, at), product), Const(0, INT32), span=block.span,
    )  # fmt: skip
    return buffer, nest(loops, made)
