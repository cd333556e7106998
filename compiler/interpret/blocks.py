"""One block over its whole domain, in boxes that fit the cache."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np

from ..ir.dtype import DType
from ..ir.expr import Binary, Buffer
from ..ir.stmt import Block, IterKind
from .approx import LARGEST, SMALLEST, Approx, larger
from .contraction import LIMIT as FACTOR_LIMIT
from .contraction import Contraction, contract, contraction_of, is_exact
from .evaluate import Box, evaluate, index_array
from .inputs import Array
from .places import place

#: Points of a domain that are evaluated at once.
LIMIT = 1 << 21
Memory = dict[Buffer, Approx]
Sizes = tuple[int, ...]
#: How far the heaviest part of a box is over its limit, and how many parts are as heavy.
Weight = tuple[float, int]
#: How the steps of a reduction are combined.
_COMBINE: dict[str, np.ufunc] = {
    "add": np.add,
    "mul": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def run_block(block: Block, memory: Memory, *, is_place: bool = False) -> None:
    """Writes what the block computes into its buffer's contents, in place. is_place: the block is one of
    `places_of`."""
    value, error = memory[block.buffer].value, memory[block.buffer].error
    if any(v.extent.const == 0 for v in block.iters):
        _run_empty(block, memory)
        return
    op = block.value.op if block.is_reduction and isinstance(block.value, Binary) else None
    c = contraction_in(block)
    if c is not None and not block.buffer.dtype.is_float:
        point = Box(block.iters, (0,) * len(block.iters), (1,) * len(block.iters))
        c = c if is_exact(c, point, block.buffer.dtype, memory) else None
    for box in _boxes(block, c):
        at = _place(block, box)
        so_far = Approx(value[at], None if error is None else error[at])
        whole = is_place and box.sizes == _extents(block)
        found = place(block, box, memory) if whole else None
        part = _aligned(block, box, _part(block, op, c, box, so_far, memory) if found is None else found)
        value[at] = part.value
        if part.error is not None and error is None:
            error = np.zeros(value.shape, part.error.dtype)
        if error is not None:
            error[at] = 0 if part.error is None else part.error
    memory[block.buffer] = Approx(value, error)


def _run_empty(block: Block, memory: Memory) -> None:
    """A block some of whose variables have no value, as where a size is 0: nothing, or the inits alone."""
    kinds = list(zip(block.iters, block.kinds, strict=True))
    if block.init is None or any(v.extent.const == 0 for v, k in kinds if k is IterKind.SPATIAL):
        return
    sizes = tuple((v.extent.const or 0) if k is IterKind.SPATIAL else 1 for v, k in kinds)
    box = Box(block.iters, (0,) * len(sizes), sizes)
    start = _aligned(block, box, evaluate(block.init, box, memory))
    memory[block.buffer].value[_place(block, box)] = start.value


def contraction_in(block: Block) -> Contraction | None:
    """The sum of products that the block is, if it is one."""
    if not block.is_reduction or not isinstance(block.value, Binary) or block.value.op != "add":
        return None
    return contraction_of(block.value.b, block.buffer.dtype)


def box_sizes(block: Block, c: Contraction | None) -> Sizes:
    """The sizes of the largest box of the block's domain that is evaluated at once."""
    extents = _extents(block)
    spatial = [d for d, k in enumerate(block.kinds) if k is IterKind.SPATIAL]
    reduce = [d for d, k in enumerate(block.kinds) if k is IterKind.REDUCE]
    return _cut(extents, spatial + reduce, _weight(block, c))


def _extents(block: Block) -> Sizes:
    return tuple(v.extent.const or 0 for v in block.iters)


def _boxes(block: Block, c: Contraction | None) -> Iterator[Box]:
    """The domain in pieces; reduce variables are cut last, and piece by piece in order."""
    extents = _extents(block)
    sizes = box_sizes(block, c)
    ranges = (range(0, n, s) for n, s in zip(extents, sizes, strict=True))
    for starts in itertools.product(*ranges):
        here = tuple(min(s, n - a) for a, s, n in zip(starts, sizes, extents, strict=True))
        yield Box(block.iters, starts, here)


def parts_of(block: Block, c: Contraction) -> list[list[int]]:
    """The dimensions of the domain that stand in each factor, and those that stand in the result."""
    inside = [[d for d, v in enumerate(block.iters) if v in used] for used in (c.a_vars, c.b_vars)]
    return [*inside, [d for d, k in enumerate(block.kinds) if k is IterKind.SPATIAL]]


def _weight(block: Block, c: Contraction | None) -> Callable[[Sizes], Weight]:
    """How heavy a box of these sizes is."""
    if c is None:
        return lambda sizes: (math.prod(sizes) / LIMIT, 1)
    parts = parts_of(block, c)

    def weight(sizes: Sizes) -> Weight:
        inside = [math.prod(sizes[d] for d in dims) / FACTOR_LIMIT for dims in parts]
        return max(inside), inside.count(max(inside))

    return weight


def _cut(sizes: Sizes, dims: list[int], weight: Callable[[Sizes], Weight]) -> Sizes:
    """Halves the first of `dims` that makes the box lighter, until it is light enough."""
    cut = list(sizes)
    # A second round, for what was not the heaviest part the first time.
    for d in [*dims, *dims]:
        while weight(tuple(cut))[0] > 1 and cut[d] > 1:
            lighter = [*cut[:d], -(-cut[d] // 2), *cut[d + 1 :]]
            if weight(tuple(lighter)) >= weight(tuple(cut)):
                break
            cut = lighter
    return tuple(cut)


def _part(
    block: Block, op: str | None, c: Contraction | None, box: Box, so_far: Approx, memory: Memory
) -> Approx:
    """What the block writes over the box, given what stands there."""
    if op is None or not isinstance(block.value, Binary):
        return evaluate(block.value, box, memory)
    dtype = block.buffer.dtype
    first = all(s == 0 for s, k in zip(box.starts, block.kinds, strict=True) if k is IterKind.REDUCE)
    total = contract(c, box, block.kinds, dtype, _terms(block), memory) if c is not None else None
    if total is None:
        total = _reduce(op, dtype, evaluate(block.value.b, box, memory), box, block)
    if first and block.init is not None:
        return _join(op, dtype, evaluate(block.init, box, memory), total)
    # Brought back from the order of the buffer to that of the variables.
    return _join(op, dtype, _spread(block, box, so_far), total)


def _reduce(op: str, dtype: DType, term: Approx, box: Box, block: Block) -> Approx:
    """The terms combined along the reduce variables, which keep size 1."""
    axes = tuple(d for d, k in enumerate(block.kinds) if k is IterKind.REDUCE)
    shape = tuple(box.sizes[d] if d in axes else n for d, n in enumerate(term.value.shape))
    value = np.broadcast_to(term.value, shape)
    error = None if term.error is None else np.broadcast_to(term.error, shape)
    r = _COMBINE[op].reduce(value, axis=axes, keepdims=True, dtype=value.dtype)
    if op in ("min", "max"):
        return Approx(r, None if error is None else _extreme_error(op, dtype, value, error, r, axes))
    if dtype.is_bool:
        return Approx(r, None if error is None else np.asarray(error.any(axis=axes, keepdims=True)))
    if not dtype.is_float:
        return Approx(r, None if error is None else _integer_error(op, error, axes))
    size = np.abs(value)
    if op == "add":
        e = size.sum(axis=axes, keepdims=True) * (8.0 * math.sqrt(_terms(block)) * dtype.eps)
        return Approx(r, e if error is None else e + error.sum(axis=axes, keepdims=True))
    return _product(r, size, error, axes, _terms(block), dtype)


def _extreme_error(
    op: str, dtype: DType, value: Array, error: Array, r: Array, axes: tuple[int, ...]
) -> Array:
    """How far an extreme value `r` may be off: what cannot become the extreme one does not count."""
    if not dtype.is_float:
        return np.asarray(error.max(axis=axes, keepdims=True))
    ends = [_COMBINE[op].reduce(x, axis=axes, keepdims=True) for x in (value - error, value + error)]
    off = np.maximum(np.abs(r - ends[0]), np.abs(ends[1] - r))
    return np.where(np.isnan(off), 0.0, off)


def _product(
    r: Array, size: Array, error: Array | None, axes: tuple[int, ...], terms: int, dtype: DType
) -> Approx:
    """A product `r` of floats of `size`, each with its error. Nothing is known where the partial products of
    some order leave the range of the dtype."""
    high = size if error is None else size + error
    e = high.prod(axis=axes, keepdims=True) * (1.0 + terms * dtype.eps) - size.prod(axis=axes, keepdims=True)
    finite = np.where(np.isfinite(high), high, 1.0)
    grown = np.maximum(finite, 1.0).prod(axis=axes, keepdims=True)
    shrunk = np.where(finite > 0, np.minimum(finite, 1.0), 1.0).prod(axis=axes, keepdims=True)
    normal = SMALLEST[str(dtype)]
    lost = (shrunk < normal) & ((grown > 1.0) | ~np.isfinite(high).all(axis=axes, keepdims=True))
    unknown = (grown > LARGEST[str(dtype)] * 0.99) | lost
    e = np.where(unknown, np.inf, np.maximum(e, 0.0))
    return Approx(r, np.where(shrunk < normal, e + terms * normal, e))


def _terms(block: Block) -> int:
    """The steps of each reduction over the whole domain: the bound is that of the whole sum, also in a box
    that holds a part of it."""
    kinds = zip(block.iters, block.kinds, strict=True)
    return math.prod(v.extent.const or 1 for v, k in kinds if k is IterKind.REDUCE)


def _integer_error(op: str, error: Array, axes: tuple[int, ...]) -> Array:
    if op == "add":
        return np.asarray(error.sum(axis=axes, keepdims=True))
    return np.where(error.any(axis=axes, keepdims=True), np.inf, 0.0)


def _join(op: str, dtype: DType, start: Approx, total: Approx) -> Approx:
    """The steps before and those of this box. The rounding is in the bound of the steps already."""
    value = _COMBINE[op](start.value, total.value)
    if dtype.is_bool:
        flags = [x.error for x in (start, total) if x.error is not None]
        return Approx(value, np.asarray(np.any(np.broadcast_arrays(*flags), axis=0)) if flags else None)
    if op in ("and", "or", "xor") and (start.error is not None or total.error is not None):
        return Approx(value, _integer_error(op, np.asarray(larger(start.error, total.error)), ()))
    if start.error is None and (total.error is None or op != "mul"):
        return Approx(value, total.error)
    es = np.zeros(()) if start.error is None else start.error
    et = np.zeros(()) if total.error is None else total.error
    if op == "mul":
        parts = (np.abs(start.value) * et, np.abs(total.value) * es, es * et)
        return Approx(value, np.asarray(sum(np.where(np.isnan(x), 0.0, x) for x in parts)))
    return Approx(value, es + et if op == "add" else np.maximum(es, et))


def _order(block: Block) -> list[int] | None:
    """The variable of each dimension of the buffer, where the indices are distinct spatial variables; else
    None."""
    order = [next((d for d, v in enumerate(block.iters) if v is p.atom), -1) for p in block.indices]
    plain = -1 not in order and len(set(order)) == len(order)
    return order if plain and all(block.kinds[d] is IterKind.SPATIAL for d in order) else None


def _place(block: Block, box: Box) -> tuple[slice | Array, ...]:
    """Where in the buffer the box is written."""
    order = _order(block)
    if order is not None:
        return tuple(slice(box.starts[d], box.starts[d] + box.sizes[d]) for d in order)
    spatial = Box(
        box.vars,
        box.starts,
        tuple(n if k is IterKind.SPATIAL else 1 for n, k in zip(box.sizes, block.kinds, strict=True)),
    )
    return tuple(index_array(p, spatial) for p in block.indices)


def _aligned(block: Block, box: Box, x: Approx) -> Approx:
    """From one dimension for each variable to the dimensions of `_place`."""
    order = _order(block)
    if order is None:
        return x
    shape = [box.sizes[d] for d in order]

    def move(a: Array) -> Array:
        rest = [d for d in range(box.rank) if d not in order]
        moved = a.transpose(order + rest)
        return np.broadcast_to(moved.reshape(moved.shape[: len(order)]), shape)

    return Approx(move(x.value), None if x.error is None else move(x.error))


def _spread(block: Block, box: Box, x: Approx) -> Approx:
    """The opposite of `_aligned`."""
    order = _order(block)
    if order is None:
        return x

    def move(a: Array) -> Array:
        rest = [d for d in range(box.rank) if d not in order]
        full = a.reshape(a.shape + (1,) * len(rest))
        return full.transpose(np.argsort(order + rest).tolist())

    return Approx(move(x.value), None if x.error is None else move(x.error))
