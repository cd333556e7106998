"""A program's blocks in groups that are scheduled together: a reduction with its producers and its epilogue,
or one elementwise block."""

from __future__ import annotations

from dataclasses import dataclass

from ..ir import Block, Buffer, PrimFunc, Unary, buffers_read, loads, walk_expr
from ..ir.annotations import is_ahead, made_ahead
from ..schedule import Schedule
from ..schedule.find import readers, writers
from ..schedule.primitives.inline import inlined_size, is_permutation
from .accesses import operations
from .row_group import is_row_reduction, row_group
from .windows import Windows

#: Operations of a block, of which a function counts for 16, that is still computed by register tiles, all of
#: it unrolled. Whatever takes more, takes longer than reading what it needs from memory.
MAX_EPILOGUE = 64
#: Nodes of a value that elementwise producers are inlined into: each may stand there twice, and so on.
MAX_INLINED = 2_000


@dataclass(frozen=True, slots=True)
class Group:
    """main: the block that is tiled. producers: elementwise blocks that only main reads. epilogue: the
    elementwise block, over the same points as main, that alone reads main's result; None when there is
    none. rows: where main reduces rows, all blocks of the group in program order; it has no other ones."""

    main: str
    producers: tuple[str, ...] = ()
    epilogue: str | None = None
    rows: tuple[str, ...] = ()


def is_elementwise(block: Block) -> bool:
    """No reduction, and writes at its own iteration variables."""
    return not block.is_reduction and block.init is None and is_permutation(block.indices, block.iters)


def inline_elementwise(sch: Schedule) -> None:
    """Inlines each elementwise intermediate into its only reader when that is elementwise too, and a cheap
    one of a single array into all of them: a pass over memory is saved."""
    while True:
        candidate = next((b for _, b in sch.func.blocks() if _inlines(sch.func, b)), None)
        if candidate is None:
            return
        sch.compute_inline(sch.get_block(candidate.name))


def constants_first(sch: Schedule) -> None:
    """Makes ahead of the calls what elementwise blocks compute of constants alone."""
    while True:
        ready = made_ahead(sch.func)
        candidate = next((b for _, b in sch.func.blocks() if _is_constant(sch.func, b, ready)), None)
        if candidate is None:
            return
        sch.compute_ahead(sch.get_block(candidate.name))


def _is_constant(func: PrimFunc, block: Block, ready: frozenset[Buffer]) -> bool:
    reads = buffers_read(block)
    return (
        block.buffer not in (*func.params, *ready)
        and is_elementwise(block)
        and len(writers(func, block.buffer)) == 1
        and bool(reads)
        and all(x.constant or x in ready for x in reads)
    )


def _inlines(func: PrimFunc, block: Block) -> bool:
    if block.buffer in func.params or not is_elementwise(block) or len(writers(func, block.buffer)) != 1:
        return False
    users = readers(func, block.buffer)
    if not users or any(u.is_reduction for u in users):
        return False
    cheap = not any(type(e) is Unary for e in walk_expr(block.value))
    if len(users) > 1:
        # What reads one array costs each reader no more memory than its result would.
        return cheap and len([*loads(block.value)]) <= 1 and all(map(is_elementwise, users))
    if inlined_size(block, users[0]) > MAX_INLINED:
        return False
    at_once = len([x for x in loads(users[0].value) if x.buffer is block.buffer]) == 1
    return at_once or cheap


def groups_of(func: PrimFunc, *, by_rows: bool = True) -> list[Group]:
    """The groups in program order; every block stands in exactly one. `by_rows`: reductions of rows are
    scheduled together with what else is computed for each row."""
    blocks = [b for _, b in func.blocks()]
    taken: set[str] = set()
    groups: dict[str, Group] = {}
    for b in blocks:
        if not b.is_reduction or b.name in taken:
            continue
        if by_rows and is_row_reduction(b):
            members = row_group(func, b, taken)
            taken |= set(members)
            groups[members[-1]] = Group(b.name, rows=members)
            continue
        producers = []
        for buffer in buffers_read(b):
            made = writers(func, buffer)
            if len(made) == 1 and made[0].name not in taken and _only_feeds(func, made[0], b):
                producers.append(made[0].name)
        epilogue = _epilogue(func, b)
        if epilogue in taken:
            epilogue = None
        taken |= {b.name, *producers, *([epilogue] if epilogue else [])}
        groups[b.name] = Group(b.name, tuple(producers), epilogue)
    return [
        groups[b.name] if b.name in groups else Group(b.name)
        for b in blocks
        if (b.name in groups or b.name not in taken) and not is_ahead(b)
    ]


def _only_feeds(func: PrimFunc, producer: Block, main: Block) -> bool:
    return (
        producer.buffer not in func.params
        and not is_ahead(producer)
        and is_elementwise(producer)
        and readers(func, producer.buffer) == [main]
        and _is_moved(main, producer.buffer)
    )


def _is_moved(main: Block, buffer: Buffer) -> bool:
    """Whether windows move over what is read; True for a block without windows. What windows meet at each
    place is made once for all of them."""
    windows = Windows.of(main)
    if windows is None:
        return True
    return any(
        set(windows.places) & i.vars() for x in loads(main.value) if x.buffer is buffer for i in x.indices
    )


def _epilogue(func: PrimFunc, main: Block) -> str | None:
    """The only reader of main's intermediate, when it covers the same points, each at its own place."""
    if main.buffer in func.params:
        return None
    users = readers(func, main.buffer)
    if len(users) != 1 or not is_elementwise(users[0]):
        return None
    user = users[0]
    if operations(user) > MAX_EPILOGUE:
        return None
    used = [x.indices for x in loads(user.value) if x.buffer is main.buffer]
    same = all(i == used[0] for i in used) and is_permutation(used[0], user.iters)
    others_ready = all(
        w.name != main.name and _before(func, w.name, main.name)
        for buffer in buffers_read(user)
        if buffer is not main.buffer
        for w in writers(func, buffer)
    )
    full = [it.extent for it in user.iters]
    return (
        user.name
        if same and others_ready and sorted(map(repr, full)) == sorted(map(repr, main.buffer.shape))
        else None
    )


def _before(func: PrimFunc, first: str, second: str) -> bool:
    names = [b.name for _, b in func.blocks()]
    return names.index(first) < names.index(second)
