"""What a program must satisfy before it becomes native code: names in scope, one writer rules, and every
access in bounds."""

from __future__ import annotations

from collections.abc import Iterable

from ..arith import (
    LARGEST,
    Atom,
    Fn,
    Poly,
    Var,
    is_injective,
    is_positive,
    poly,
    positive_atoms,
    reach,
    substitute,
)
from .errors import VerifyError
from .expr import Binary, Expr, InBounds, Load, Select
from .func import PrimFunc
from .limits import MAX_BLOCKS, within_effort, within_limits
from .proofs import follows
from .rules import REDUCERS
from .stmt import Block, IterKind
from .visit import Path, children, indices_of, loads


def verify(func: PrimFunc, at: str = "") -> None:
    """Raises VerifyError unless: names are distinct, ranks fit, every variable is in scope, every block's
    iteration variables stay in their extents, every read and write is proved in bounds or guarded by an
    InBounds condition or a predicate, and no index passes through numbers of more than 64 bits."""
    with within_effort(at):
        _verify(func, at)


def _verify(func: PrimFunc, at: str) -> None:
    _unique((b.name for b in func.params + func.allocs), "buffer", at)
    _unique((b.name for _, b in func.blocks()), "block", at)
    known = set(func.params + func.allocs)
    within_limits(func, at)
    _sizes(func, at)
    _constants(func, at)
    blocks = list(func.blocks())
    if len(blocks) > MAX_BLOCKS:
        raise VerifyError(f"the program has {len(blocks)} blocks; at most {MAX_BLOCKS} are allowed", at)
    if not func.outputs:
        raise VerifyError("no block writes a parameter: the program has no output", at)
    written: set[object] = set(func.inputs)
    for path, block in blocks:
        where = f"block {block.name!r}"
        if block.buffer not in known or any(x.buffer not in known for x in loads(block.value)):
            raise VerifyError(f"{where} uses a buffer that is neither a parameter nor allocated", at)
        _stored(block, where, at)
        if not any(v.extent.const == 0 for v in (*block.iters, *(f.var for f in path))):
            # Where a size is bound to 0 a block has no instance, whose accesses could be wrong.
            _scopes(path, block, where, at)
            _accesses(block, where, at)
        for x in loads(block.value):
            # A reduction with an init writes its accumulator before it reads it.
            if x.buffer not in written and not (x.buffer is block.buffer and block.init is not None):
                raise VerifyError(f"{where} reads {x.buffer.name!r} before any block wrote it", at)
        written.add(block.buffer)


def _sizes(func: PrimFunc, at: str) -> None:
    """Sizes have names of their own, and each is a dimension of a parameter by itself; indices fit into 64
    bits."""
    known = set(func.sizes)
    _unique((s.name for s in func.sizes), "size", at)
    loops = {f.var for path, _ in func.blocks() for f in path}
    named = [(p, f"buffer {b.name!r}") for b in func.params + func.allocs for p in b.shape]
    named += [(v.extent, f"loop {v.name!r}") for v in loops]
    named += [(v.extent, f"block {b.name!r}") for _, b in func.blocks() for v in b.iters]
    for p, where in named:
        if p.const is None:
            _divisors(p, frozenset(), where, at)
    for _, b in func.blocks():
        named += [(p, f"block {b.name!r}") for p in (*b.binds, *b.predicates, *_inside(b))]
    for p, where in named:
        for s in p.sizes():
            if s not in known:
                raise VerifyError(
                    f"{where} uses the size {s.name!r}, which is no dimension of a parameter by itself", at
                )
        if reach(p) > LARGEST:
            raise VerifyError(f"{where}: the index {p!r} may need more than 64 bits", at)


def _constants(func: PrimFunc, at: str) -> None:
    """Only parameters are constant, of integer extents, and nobody writes them."""
    for b in func.allocs:
        if b.constant:
            raise VerifyError(f"buffer {b.name!r} is constant, but only parameters may be", at)
    for b in func.constants:
        if any(p.sizes() for p in b.shape):
            raise VerifyError(f"the constant {b.name!r} has a shape that only a call tells", at)
        if b in func.outputs:
            raise VerifyError(f"the parameter {b.name!r} is constant, but a block writes it", at)


def _stored(block: Block, where: str, at: str) -> None:
    """What is stored has the buffer's dtype; a reduction reads its accumulator and combines it with a
    reducer."""
    b, v = block.buffer, block.value
    for e, word in ((v, "value"), (block.init, "init")):
        if e is not None and e.dtype != b.dtype:
            raise VerifyError(f"{where}: the {word} is {e.dtype}, but {b.name!r} is {b.dtype}", at)
    own = [x for x in loads(v) if x.buffer is b]
    if any(x.indices != block.indices for x in own):
        raise VerifyError(
            f"{where} reads {b.name!r}, which it writes, at another place than the one it writes", at
        )
    if not block.is_reduction:
        if block.init is not None:
            raise VerifyError(f"{where} has an init but no reduce variable", at)
        return
    if (
        type(v) is not Binary
        or v.op not in REDUCERS
        or type(v.a) is not Load
        or v.a.buffer is not b
        or len(own) != 1
    ):
        known = ", ".join(sorted(REDUCERS))
        raise VerifyError(
            f"{where} has reduce variables, so that its value must be one of {known} "
            f"of {b.name!r} and a term",
            at,
        )
    for it, kind in zip(block.iters, block.kinds, strict=True):
        if kind is IterKind.REDUCE and any(it in i.vars() for i in block.indices):
            raise VerifyError(f"{where} writes {b.name!r} at the reduce variable {it.name!r}", at)
        if (
            kind is IterKind.REDUCE
            and block.init is not None
            and any(it in i.vars() for i in indices_of(block.init))
        ):
            raise VerifyError(f"{where}: the init uses the reduce variable {it.name!r}", at)
    if block.init is not None and any(x.buffer is b for x in loads(block.init)):
        raise VerifyError(f"{where}: the init reads {b.name!r}, which it is the first to write", at)
    if block.init is not None:
        _begins_once(block, where, at)


def _begins_once(block: Block, where: str, at: str) -> None:
    """The first iteration of the reduce loops, and no other, is step 0, which the init comes before."""
    steps = [n for n, kind in enumerate(block.kinds) if kind is IterKind.REDUCE]
    binds = [block.binds[n] for n in steps]
    loops = {v for p in binds for v in p.vars()}
    first: dict[Atom, Poly] = {v: poly(0) for v in loops}
    extents = [block.iters[n].extent for n in steps]
    if any(substitute(p, first).const != 0 for p in binds) or not is_injective(binds, extents, loops):
        names = ", ".join(repr(block.iters[n].name) for n in steps)
        raise VerifyError(
            f"{where}: the steps {names} must be 0 in the first iteration of their loops, "
            "before which the init stands, and in no other",
            at,
        )


def _unique(names: Iterable[str], what: str, at: str) -> None:
    seen: set[str] = set()
    for n in names:
        if n in seen:
            raise VerifyError(f"two {what}s are named {n!r}", at)
        seen.add(n)


def _scopes(path: Path, block: Block, where: str, at: str) -> None:
    around = tuple(f.var for f in path) + block.iters
    if any(v.extent.const is None for v in around):
        known = positive_atoms(around)
        for p in (*block.binds, *block.predicates, *_inside(block)):
            _divisors(p, known, where, at)
    loops = {f.var for f in path}
    if len(loops) != len(path):
        raise VerifyError(f"{where} stands in two loops over one variable", at)
    for p in block.binds + block.predicates:
        for v in p.vars() - loops:
            raise VerifyError(f"{where} binds to {v.name!r}, which is no loop around it", at)
    iters: set[Var] = set(block.iters)
    for p in _inside(block):
        for v in p.vars() - iters:
            raise VerifyError(f"{where} uses {v.name!r}, which is not one of its iteration variables", at)
    given = block.predicates + _nonempty(f.var for f in path)
    for it, bind in zip(block.iters, block.binds, strict=True):
        for bad, word in ((bind - it.extent, "above"), (-bind - 1, "below")):
            if not follows(bad, given):
                raise VerifyError(
                    f"{where}: the binding of {it.name!r}, {bind!r}, may be {word} [0, {it.extent!r})",
                    at,
                )


def _divisors(p: Poly, known: frozenset[Atom], where: str, at: str) -> None:
    for a in p.atoms():
        if type(a) is Fn:
            _divisors(a.a, known, where, at)
            _divisors(a.b, known, where, at)
            if a.op in ("floordiv", "ceildiv") and a.b.const is None and not is_positive(a.b, known):
                raise VerifyError(f"{where} divides by {a.b!r}, which may be 0, in {p!r}", at)


def _nonempty(variables: Iterable[Var]) -> tuple[Poly, ...]:
    """What is below 0 where the variables have values: 0 is less than each extent."""
    return tuple(-v.extent for v in variables if v.extent.const is None)


def _inside(block: Block) -> Iterable[Poly]:
    yield from block.indices
    yield from indices_of(block.value)
    if block.init is not None:
        yield from indices_of(block.init)


def _accesses(block: Block, where: str, at: str) -> None:
    known = _nonempty(block.iters)
    _access(Load(block.buffer, block.indices), known, f"{where} writes", at)
    _value(block.value, known, where, at)
    if block.init is not None:
        _value(block.init, known, where, at)


def _value(e: Expr, known: tuple[Poly, ...], where: str, at: str) -> None:
    if type(e) is Load:
        _access(e, known, f"{where} reads", at)
    elif type(e) is Select and type(e.cond) is InBounds:
        _value(e.a, known + e.cond.conditions, where, at)
        _value(e.b, known, where, at)
    else:
        for c in children(e):
            _value(c, known, where, at)


def _access(access: Load, known: tuple[Poly, ...], where: str, at: str) -> None:
    b = access.buffer
    if len(access.indices) != len(b.shape):
        raise VerifyError(
            f"{where} {b.name!r} with {len(access.indices)} indices; it has {len(b.shape)} dimensions", at
        )
    for d, (i, extent) in enumerate(zip(access.indices, b.shape, strict=True)):
        if not follows(-i - 1, known) or not follows(i - extent, known):
            raise VerifyError(
                f"{where} {b.name!r} at {i!r} in dimension {d}, which may leave [0, {extent!r})", at
            )
