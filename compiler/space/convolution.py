"""The rule for windows: reductions that read an operand at sums of a spatial and a reduction step, as
convolutions and pooling do.

Windows of one element that move by one are matrix products once their places run as one loop; these go to
the rule for contractions. What differs in structure elsewhere is a choice: the axis of the lanes, whether the
weight is packed, where padding is done, and whether the channels or the last step of the window run
innermost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from ..arith import Fn, Poly, Var
from ..ir import Block, Buffer, IterKind, Load, PrimFunc, loads
from ..schedule import Schedule
from ..target import Target
from .ahead import constants_of
from .contraction import Contraction, contractions
from .groups import Group
from .sketch import Constraint
from .window_tiles import Padding, WindowChoice, WindowTiles
from .windows import Windows, lane_stride

#: With fewer lanes than this, an axis is only taken where no other has as many.
FEW_LANES = 8


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A structure of the program that a rewrite makes: places as one loop, or groups apart from their
    channels."""

    rewrite: Callable[[Schedule, Group], Group]
    choice: Contraction | Convolution
    name: str

    @property
    def fallback(self) -> bool:
        """As of the structure."""
        return self.choice.fallback

    def apply(self, sch: Schedule, group: Group, target: Target, tag: str) -> list[Constraint]:
        """Applies the structure; answers what the knobs must satisfy."""
        return self.choice.apply(sch, self.rewrite(sch, group), target, tag)


@dataclass(frozen=True, slots=True)
class Convolution:
    """One structure over windows. places, steps: the positions of what moves windows, and of what moves
    within them, among the block's iteration variables."""

    choice: WindowChoice
    places: tuple[int, ...]
    steps: tuple[int, ...]
    name: str
    fallback: bool = False

    def apply(self, sch: Schedule, group: Group, target: Target, tag: str) -> list[Constraint]:
        """Applies the structure; answers what the knobs must satisfy."""
        iters = sch.func.block(group.main)[1].iters
        places, steps = (tuple(iters[n] for n in at) for at in (self.places, self.steps))
        tiles = WindowTiles(sch, group, self.choice, target, tag, places, steps)
        tiles.apply()
        return tiles.constraints


def convolutions(
    func: PrimFunc, group: Group, target: Target
) -> Iterator[Rewritten | Convolution | Contraction]:
    """Every structure that the rule knows for a group with windows, the most promising first."""
    _, main = func.block(group.main)
    if not main.is_reduction:
        return
    windows, channels = Windows.of(main), _channels_of_group(main)
    if windows is None:
        # At a single place.
        if channels is not None:
            yield from _rewritten(func, group, target, groups_apart, "groups apart")
        return
    if windows.channels and _is_pointwise(main, windows, group):
        found = list(_rewritten(func, group, target, places_as_one, "places as one"))
        if main.indices[-1].atom in windows.places:
            # Places that fill no vectors are better read one by one, and written across.
            others = _over_windows(func, group, windows)
            found += [w for w in others if main.iters[w.choice.lane] not in windows.places]
        if channels is None or not all(c.fallback for c in found):
            yield from found
            return
    if channels is not None:
        sch = Schedule(func)
        after = groups_apart(sch, group)
        windows = _apart(windows, main, sch.func.block(group.main)[1], channels[0])
        for w in _over_windows(sch.func, after, windows):
            yield Rewritten(groups_apart, w, f"groups apart, {w.name}")
    else:
        yield from _over_windows(func, group, windows)
    yield Contraction(None, (), bool(group.producers), "scalar")


def _rewritten(
    func: PrimFunc, group: Group, target: Target, rewrite: Callable[[Schedule, Group], Group], what: str
) -> Iterator[Rewritten | Convolution]:
    """The contractions of what a rewrite makes."""
    sch = Schedule(func)
    after = rewrite(sch, group)
    for c in contractions(sch.func, after, target):
        yield Rewritten(rewrite, c, f"{what}, {c.name}")


def _apart(windows: Windows, before: Block, after: Block, channels: int) -> Windows:
    """The windows of a block whose channels, which stood at that position, are two variables now. It may not
    show any more which variables of one step are windows'."""

    def moved(old: tuple[Var, ...]) -> tuple[Var, ...]:
        at = (before.iters.index(v) for v in old)
        return tuple(after.iters[n + (n > channels)] for n in at)

    return Windows(moved(windows.places), moved(windows.steps), moved(windows.channels))


def _over_windows(func: PrimFunc, group: Group, windows: Windows) -> Iterator[Convolution]:
    _, main = func.block(group.main)
    places, steps = (tuple(map(main.iters.index, vs)) for vs in (windows.places, windows.steps))
    for n, packed in _lanes(main, windows, group, func):
        moves = any(main.iters[n] in i.vars() for x in _data(main, windows) for i in x.indices)
        for padding in _paddings(group, dense=bool(windows.channels)):
            for inside in _innermost(main, windows, lanes_move_data=moves):
                choice = WindowChoice(n, packed, padding, inside)
                yield Convolution(choice, places, steps, _name(main, choice, group))


def _paddings(group: Group, *, dense: bool) -> tuple[Padding, ...]:
    if not group.producers:
        return ("none",)
    # Guards cost more than a copy where each element is read for every output channel.
    return ("strip",) if dense else ("inline", "strip")


def _innermost(main: Block, windows: Windows, *, lanes_move_data: bool) -> tuple[bool, ...]:
    """Whether the channels run inside of all steps of a window: where they are what lies side by side in
    memory. Otherwise both are worth a try."""
    if not windows.channels or not any((v.extent.const or 1) > 1 for v in windows.steps):
        return (True,)
    last = [x.indices[-1].vars() for x in _data(main, windows) if x.indices]
    if any(c in i for i in last for c in windows.channels):
        return (True,)
    return (False,) if lanes_move_data else (True, False)


def _data(main: Block, windows: Windows) -> list[Load]:
    return [x for x in loads(main.value) if x.buffer is not main.buffer and _moved(x, windows.places)]


def _lanes(
    main: Block, windows: Windows, group: Group, func: PrimFunc
) -> Iterator[tuple[int, tuple[Buffer, ...]]]:
    """Positions of iteration variables that can be lanes, with the operands to be packed for it."""
    reads = [x for x in loads(main.value) if x.buffer is not main.buffer]
    produced = {func.block(p)[1].buffer for p in group.producers}
    found: list[tuple[int, tuple[Buffer, ...]]] = []
    for n, (it, kind) in enumerate(zip(main.iters, main.kinds, strict=True)):
        if kind is IterKind.REDUCE or (it.extent.const or 0) < 2:
            continue
        strides = {x.buffer: lane_stride(x, it, windows.places) for x in reads}
        if all(s == 0 for s in strides.values()):
            continue
        bad = [b for b, s in strides.items() if s is None]
        weights = {x.buffer for x in reads if not _moved(x, windows.places)} - produced
        if any(b not in weights for b in bad):
            continue
        # Constants are packed in any case, ahead of the calls.
        ahead = constants_of(func, main)
        must = tuple(b for b in bad if b not in ahead)
        may = [
            b
            for b, s in strides.items()
            if s == 1 and b in weights and not bad and b not in ahead and len(b.shape) > 1
        ]
        found += [(n, must), *((n, (b,)) for b in may)]
    # Few lanes are no match for many.
    most = max((main.iters[n].extent.const or 0 for n, _ in found), default=0)
    found = [f for f in found if (main.iters[f[0]].extent.const or 0) >= min(most, FEW_LANES)]
    # Broadcasts of what lies still are cheaper than vectors that begin anywhere.
    yield from sorted(found, key=lambda f: any(lane_stride(x, main.iters[f[0]]) == 0 for x in reads) is False)


def _moved(load: Load, by: tuple[Var, ...]) -> bool:
    return any(v in i.vars() for i in load.indices for v in by)


def _name(main: Block, choice: WindowChoice, group: Group) -> str:
    text = f"lanes {main.iters[choice.lane].name}" + "".join(f", pack {b.name}" for b in choice.packed)
    if choice.padding != "none":
        text += f", {choice.padding} {' '.join(group.producers)}"
    return text if choice.channels_inside else f"{text}, window inside"


# ---- rewrites ----
def _is_pointwise(main: Block, windows: Windows, group: Group) -> bool:
    """Windows of one element at places that move by one, read as they are."""
    if group.producers or any(v.extent.const != 1 for v in windows.steps):
        return False
    places = list(windows.places)
    at = [main.iters.index(v) for v in places]
    if at != list(range(at[0], at[0] + len(at))):
        return False

    def side_by_side(indices: tuple[Poly, ...], shape: tuple[Poly, ...]) -> bool:
        dims = [d for d, i in enumerate(indices) if i.vars() & set(places)]
        return dims == list(range(dims[0], dims[0] + len(places))) and all(
            indices[d].coefficient(v) == 1 and shape[d] == v.extent for d, v in zip(dims, places, strict=True)
        )

    return side_by_side(main.indices, main.buffer.shape) and all(
        side_by_side(x.indices, x.buffer.shape) for x in _data(main, windows)
    )


def places_as_one(sch: Schedule, group: Group) -> Group:
    """Windows of one element: `h, w, c, y, x` as `h * W + w, c`, in the block, its result and its
    epilogue."""
    main = sch.func.block(group.main)[1]
    windows = Windows.of(main)
    assert windows is not None
    group = _with_epilogue(sch, group)
    main = sch.func.block(group.main)[1]
    spatial = [n for n, k in enumerate(main.kinds) if k is IterKind.SPATIAL]
    places = [n for n in spatial if main.iters[n] in windows.places]
    keep = [n for n in range(len(main.iters)) if main.iters[n] not in windows.steps]
    extents = [v.extent.const or 1 for v in main.iters]

    def merged(kept: list[int], at: list[int], sizes: list[int]) -> Callable[..., tuple[object, ...]]:
        def function(*index: Any) -> tuple[object, ...]:
            one = index[at[0]]
            for n in at[1:]:
                one = one * sizes[n] + index[n]
            return tuple(one if n == at[0] else index[n] for n in kept if n == at[0] or n not in at)

        return function

    sch.transform_block_layout(sch.get_block(group.main), merged(keep, places, extents))
    dims = [d for d, i in enumerate(main.indices) if i.atom in windows.places]
    assert group.epilogue is not None
    last = sch.func.block(group.epilogue)[1]
    read = next(x for x in loads(last.value) if x.buffer is main.buffer)
    own = [last.iters.index(v) for d in dims if isinstance(v := read.indices[d].atom, Var)]
    shape = [e.const or 1 for e in main.buffer.shape]
    rest = list(range(len(shape)))
    sch.transform_layout(sch.get_block(group.main), 0, merged(rest, dims, shape))
    ends = [v.extent.const or 1 for v in last.iters]
    sch.transform_block_layout(sch.get_block(group.epilogue), merged(list(range(len(ends))), own, ends))
    return group


def _with_epilogue(sch: Schedule, group: Group) -> Group:
    """The group with a block that takes its result; a copy where there is none."""
    if group.epilogue is not None:
        return group
    return replace(group, epilogue=sch.cache_write(sch.get_block(group.main), 0, "register").name)


def _channels_of_group(main: Block) -> tuple[int, int] | None:
    """(position, extent) of output channels that are read divided by their number in a group."""
    for n, (it, kind) in enumerate(zip(main.iters, main.kinds, strict=True)):
        if kind is IterKind.REDUCE:
            continue
        for x in loads(main.value):
            for i in x.indices:
                for a in i.atoms():
                    if not isinstance(a, Fn) or a.op != "floordiv" or a.a.atom is not it:
                        continue
                    size = a.b.const
                    if size and (it.extent.const or 1) % size == 0:
                        return n, size
    return None


def groups_apart(sch: Schedule, group: Group) -> Group:
    """Output channels as groups and the channels of each."""
    group = _with_epilogue(sch, group)
    main = sch.func.block(group.main)[1]
    found = _channels_of_group(main)
    assert found is not None
    at, size = found

    def apart(where: int) -> Callable[..., tuple[object, ...]]:
        def layout(*index: Any) -> tuple[object, ...]:
            one = index[where]
            return (*index[:where], one // size, one % size, *index[where + 1 :])

        return layout

    assert group.epilogue is not None
    last = sch.func.block(group.epilogue)[1]
    read = next(x for x in loads(last.value) if x.buffer is main.buffer)
    d = next(d for d, i in enumerate(main.indices) if i.atom is main.iters[at])
    own = next(n for n, v in enumerate(last.iters) if read.indices[d].atom is v)
    sch.transform_block_layout(sch.get_block(group.main), apart(at))
    sch.transform_layout(sch.get_block(group.main), 0, apart(d))
    sch.transform_block_layout(sch.get_block(group.epilogue), apart(own))
    return group
