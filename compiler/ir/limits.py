"""How large a program may be, and how long it may take to prove."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ..arith import LARGEST, Atom, TooHard, limited, reach
from .errors import VerifyError
from .expr import Load
from .func import PrimFunc
from .stmt import Block
from .visit import indices_of, loads

MAX_NODES = 20_000
MAX_DEPTH = 100
#: Of one index: its terms, and the factors of a term. Real programs have a handful; a place in a flat array
#: of seven dimensions that are sizes has a term of seven.
MAX_TERMS = 64
MAX_FACTORS = 8
#: Of the integers of an index, which JSON keeps exact below it.
MAX_INTEGER = 2**53
MAX_BLOCKS = 64
#: Of all buffers of one program together; 16 GiB.
MAX_BYTES = 16 << 30
#: Terms of indices that are bounded to prove one program right. Real ones take some hundred, and what takes
#: more than this would take minutes.
MAX_EFFORT = 100_000


@contextlib.contextmanager
def within_effort(at: str) -> Iterator[None]:
    """Ends with VerifyError what takes too long to prove."""
    try:
        with limited(MAX_EFFORT):
            yield
    except TooHard:
        raise VerifyError("the indices of the program take too long to prove in bounds", at) from None


def within_limits(func: PrimFunc, at: str = "") -> None:
    """Raises VerifyError where the buffers hold too many bytes, or a place or condition passes through
    numbers of more than 64 bits as it is computed. Scheduling keeps what else `verify` proves."""
    total = 0
    for b in func.params + func.allocs:
        if b.dtype.lanes > 1:
            raise VerifyError(f"buffer {b.name!r} is of {b.dtype}, but buffers hold single elements", at)
        size = b.dtype.bytes
        for extent in b.shape:
            if extent.const is not None:
                # 0 only where a size was bound to it; the readers of programs take no such extent.
                if extent.const < 0:
                    raise VerifyError(f"buffer {b.name!r} has the extent {extent.const}, below 0", at)
                size *= extent.const
        total += size
    if total > MAX_BYTES:
        raise VerifyError(f"the buffers hold {total} bytes; at most {MAX_BYTES} are allowed", at)
    for _, block in func.blocks():
        for far, what in _reaches(block):
            if far > LARGEST:
                raise VerifyError(f"block {block.name!r}: {what} may need more than 64 bits", at)


def _reaches(block: Block) -> Iterator[tuple[int, str]]:
    """How far what is computed in the end reaches: conditions, and places in flat arrays, over the variables
    of the loops."""
    of: dict[Atom, int] = {v: reach(p) for v, p in zip(block.iters, block.binds, strict=True)}
    reads = [block.value] if block.init is None else [block.value, block.init]
    for access in (Load(block.buffer, block.indices), *(x for e in reads for x in loads(e))):
        far = 0
        for index, extent in zip(access.indices, access.buffer.shape, strict=False):
            far = far * reach(extent) + reach(index, of)
        yield far, f"the place in {access.buffer.name!r}"
    for e in reads:
        for p in indices_of(e):
            yield reach(p, of), f"the index {p!r}"
