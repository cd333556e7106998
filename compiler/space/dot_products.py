"""The rule for sums of products that the processor has an instruction for: several steps of the reduction in
each lane (int8, uint8, bfloat16).

The operand that moves with the lanes is packed, so that the steps of a lane lie next
to each other; the other operand has them so, and is read for all lanes at once. A reduction that is no
multiple of the steps is padded with zeros; factors of one sign are made such of two where the instruction
wants that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..arith import Knob, Var, poly
from ..codegen.llvm.dots import Instruction, instruction_for
from ..ir import Binary, Block, Cast, Const, DType, Expr, IterKind, Load, PrimFunc
from ..schedule import LoopRV, Schedule
from ..target import Target
from .dot_product_tiles import DotProductTiles, moves
from .groups import Group
from .sketch import Constraint


@dataclass(frozen=True, slots=True)
class DotProduct:
    """One structure.

    lane, step: positions of the iteration variables whose steps are lanes, and steps of an instruction.
    x_first: whether the factor that is read for all lanes is the first one; the other one, y, is packed.
    y_lane, y_step: the dimensions of y that the two variables index. flip: whether x changes its sign.
    """

    lane: int
    step: int
    x_first: bool
    y_lane: int
    y_step: int
    lanes: int
    steps: int
    flip: bool
    name: str
    fallback: bool = False

    def apply(self, sch: Schedule, group: Group, target: Target, tag: str) -> list[Constraint]:
        """Applies the structure; answers what the knobs must satisfy."""
        tiles = DotProductTiles(sch, group, self, target, tag)
        tiles.apply()
        return tiles.constraints


def dot_products(func: PrimFunc, group: Group, target: Target) -> Iterator[DotProduct]:
    """Every structure that the rule knows for the group. Lanes whose results are written apart are left out
    where others are not; where one packs a constant, which costs a call nothing, so are those that pack the
    other factor."""
    _, main = func.block(group.main)
    found = list(_structures(main, target))
    written = main.indices[-1] if main.indices else poly(0)
    behind = [s for s in found if written.coefficient(main.iters[s.lane]) == 1]
    yield from behind or found


def _structures(main: Block, target: Target) -> Iterator[DotProduct]:
    pair = factors_of(main)
    if pair is None:
        return
    found = [list(_packing(main, pair, x_first, target)) for x_first in (True, False)]
    ahead = [made for made, y in zip(found, pair[::-1], strict=True) if y.buffer.constant and made]
    for made in ahead or found:
        yield from made


def _packing(main: Block, pair: tuple[Load, Load], x_first: bool, target: Target) -> Iterator[DotProduct]:
    """The structures that pack one of the two factors."""
    x, y = pair if x_first else pair[::-1]
    found = _instruction(target, x.dtype, y.dtype)
    step = _step(main, x, y)
    if found is None or step is None or main.buffer.dtype != x.dtype.accumulator:
        return
    if not (y.buffer.constant or _is_reused(main, y)):
        return
    instruction, flip = found
    for lane, it in enumerate(main.iters):
        widths = [n for n, _ in instruction.forms if n <= (it.extent.const or 0)]
        spatial = main.kinds[lane] is IterKind.SPATIAL
        if not widths or not spatial or dim_of(y, it) is None or moves(x, it):
            continue
        y_lane, y_step = dim_of(y, it), dim_of(y, main.iters[step])
        assert y_lane is not None and y_step is not None
        name = f"dot product over {main.iters[step].name}, lanes {it.name}"
        yield DotProduct(
            lane, step, x_first, y_lane, y_step, max(widths), instruction.steps, flip, name
        )  # fmt: skip


def factors_of(main: Block) -> tuple[Load, Load] | None:
    """The two reads whose widened product the block adds up, from 0 on."""
    v, init = main.value, main.init
    if not main.is_reduction or type(init) is not Const or init.value != 0:
        return None
    if type(v) is not Binary or v.op != "add" or type(v.b) is not Binary or v.b.op != "mul":
        return None
    x, y = _read(v.b.a), _read(v.b.b)
    return None if x is None or y is None or x.buffer is y.buffer else (x, y)


def _read(e: Expr) -> Load | None:
    return e.a if type(e) is Cast and type(e.a) is Load else None


def _instruction(target: Target, x: DType, y: DType) -> tuple[Instruction, bool] | None:
    """The instruction, and whether x is to change its sign for it."""
    found = instruction_for(target, x, y)
    if found is None or found[2] is None:
        return None if found is None else (found[0], False)
    other = DType("uint" if x.code == "int" else "int", 8)
    turned = instruction_for(target, other, y)
    return None if turned is None or turned[2] is not None else (turned[0], True)


def dim_of(x: Load, it: Var) -> int | None:
    """The dimension that the variable alone indexes, where it moves no other one."""
    dims = [d for d, i in enumerate(x.indices) if it in i.vars()]
    return dims[0] if len(dims) == 1 and x.indices[dims[0]].atom == it else None


def _step(main: Block, x: Load, y: Load) -> int | None:
    """The reduction whose steps lie next to each other in x."""
    for n, (it, kind) in enumerate(zip(main.iters, main.kinds, strict=True)):
        if kind is IterKind.REDUCE and dim_of(x, it) == len(x.indices) - 1 and dim_of(y, it) is not None:
            return n
    return None


def _is_reused(main: Block, y: Load) -> bool:
    """Whether some spatial iteration variable does not move y: only then is its packed copy read again."""
    return any(
        k is IterKind.SPATIAL and v.extent.const != 1 and not moves(y, v)
        for v, k in zip(main.iters, main.kinds, strict=True)
    )


def lane_steps(main: Block, n: int, target: Target, widths: Sequence[int]) -> int:
    """How many steps of the n-th iteration variable, a reduction, an instruction adds up in each lane where
    the lanes lie along it too. 1 where there is no such instruction, where factors are not contiguous, where
    the steps do not divide the extent, or where one of the `widths` is none of the instruction's."""
    pair = factors_of(main)
    if pair is None:
        return 1
    x, y = pair
    found = instruction_for(target, x.dtype, y.dtype)
    if (
        found is None
        or main.buffer.dtype != x.dtype.accumulator
        or x.dtype.accumulator != y.dtype.accumulator
    ):
        return 1
    steps, forms = found[0].steps, found[0].forms
    it = main.iters[n]
    length = it.extent.const or 1
    fits = all(w % forms[-1][0] == 0 and length >= w * steps for w in widths) and length % steps == 0
    contiguous = all(dim_of(z, it) == len(z.indices) - 1 for z in pair)
    return steps if fits and contiguous else 1


def split_steps(sch: Schedule, loop: LoopRV, beside: Knob, lanes: Knob, taken: int) -> list[LoopRV]:
    """A reduction as steps, vectors beside each other, lanes, and what an instruction adds up in each lane,
    which a mask never divides."""
    at_once: list[LoopRV] = []
    if taken > 1:
        loop, *at_once = sch.split(loop, [None, taken])
    return [*sch.split(loop, [None, beside, lanes]), *at_once]
