"""The one module that knows the children of expressions and statements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from ..arith import Poly
from .expr import Binary, Buffer, Cast, Compare, Const, Expr, InBounds, IndexValue, Load, Select, Unary
from .stmt import Block, For, Stmt

Path = tuple[For, ...]
IndexMap = Callable[[Poly], Poly]
LoadMap = Callable[[Load], Expr]

_NO_CHILDREN: tuple[Expr, ...] = ()
_CHILDREN: dict[type, Callable[[Expr], tuple[Expr, ...]]] = {
    Const: lambda e: _NO_CHILDREN,
    IndexValue: lambda e: _NO_CHILDREN,
    Load: lambda e: _NO_CHILDREN,
    InBounds: lambda e: _NO_CHILDREN,
    Binary: lambda e: (e.a, e.b),  # type: ignore[union-attr]
    Compare: lambda e: (e.a, e.b),  # type: ignore[union-attr]
    Unary: lambda e: (e.a,),  # type: ignore[union-attr]
    Select: lambda e: (e.cond, e.a, e.b),  # type: ignore[union-attr]
    Cast: lambda e: (e.a,),  # type: ignore[union-attr]
}


def children(e: Expr) -> tuple[Expr, ...]:
    """The sub-expressions, in order."""
    return _CHILDREN[type(e)](e)


def walk_expr(e: Expr) -> Iterator[Expr]:
    """`e` and everything below it, parents first."""
    yield e
    for c in children(e):
        yield from walk_expr(c)


def loads(e: Expr) -> Iterator[Load]:
    """Every Load, in order."""
    for x in walk_expr(e):
        if type(x) is Load:
            yield x


def guarded_loads(e: Expr, known: tuple[Poly, ...] = ()) -> Iterator[tuple[Load, tuple[Poly, ...]]]:
    """Every Load, in order, with the conditions (each below 0) under which it happens."""
    if type(e) is Load:
        yield e, known
    elif type(e) is Select and type(e.cond) is InBounds:
        yield from guarded_loads(e.a, known + e.cond.conditions)
        yield from guarded_loads(e.b, known)
    else:
        for c in children(e):
            yield from guarded_loads(c, known)


def only_moves(e: Expr) -> bool:
    """Whether `e` computes nothing of its dtype: an element, a constant, or a choice between such."""
    match e:
        case Select(_, a, b):
            return only_moves(a) and only_moves(b)
        case Load(buffer):
            return buffer.scope != "register"
    return type(e) is Const


def widest_value(b: Block) -> int:
    """Bytes of the widest element that the block computes with; one that is only moved counts as in
    memory."""
    values: list[Expr] = [b.value] if b.init is None else [b.value, b.init]
    if b.buffer.scope != "register" and all(only_moves(v) for v in values):
        return max([b.buffer.dtype.bytes, *(e.dtype.bytes for v in values for e in walk_expr(v))])
    return max([b.buffer.dtype.value_bytes, *(e.dtype.value_bytes for v in values for e in walk_expr(v))])


def indices_of(e: Expr) -> Iterator[Poly]:
    """Every polynomial that stands in `e`, in order."""
    for x in walk_expr(e):
        if type(x) is Load:
            yield from x.indices
        elif type(x) is IndexValue:
            yield x.index
        elif type(x) is InBounds:
            yield from x.conditions


def map_expr(e: Expr, index: IndexMap, load: LoadMap | None = None) -> Expr:
    """`e` with every polynomial sent through `index`, then every Load through `load`."""
    t = type(e)
    if t is Const:
        return e
    if t is Load:
        assert type(e) is Load
        moved = Load(e.buffer, tuple(index(i) for i in e.indices))
        return load(moved) if load is not None else moved
    match e:
        case Binary(op, a, b):
            return Binary(op, map_expr(a, index, load), map_expr(b, index, load))
        case Compare(op, a, b):
            return Compare(op, map_expr(a, index, load), map_expr(b, index, load))
        case Unary(op, a):
            return Unary(op, map_expr(a, index, load))
        case Select(cond, a, b):
            return Select(map_expr(cond, index, load), map_expr(a, index, load), map_expr(b, index, load))
        case Cast(dtype, a):
            return Cast(dtype, map_expr(a, index, load))
        case IndexValue(p, dtype):
            return IndexValue(index(p), dtype)
        case InBounds(conditions):
            return InBounds(tuple(index(c) for c in conditions))
    raise TypeError(f"not an expression: {e!r}")


def map_loads(e: Expr, load: LoadMap) -> Expr:
    """`e` with every Load sent through `load`."""
    return map_expr(e, lambda p: p, load)


def walk(body: Iterable[Stmt], path: Path = ()) -> Iterator[tuple[Path, Block]]:
    """(enclosing loops, block) for each block in program order."""
    for s in body:
        if type(s) is For:
            yield from walk(s.body, (*path, s))
        else:
            assert type(s) is Block
            yield path, s


def rewrite(body: tuple[Stmt, ...], f: Callable[[Stmt], Stmt | tuple[Stmt, ...]]) -> tuple[Stmt, ...]:
    """Bottom-up rewriting; `f` answers a statement or a tuple of statements that takes its place. Loops left
    empty vanish."""
    out: list[Stmt] = []
    for s in body:
        if type(s) is For:
            inner = rewrite(s.body, f)
            if not inner:
                continue
            if len(inner) != len(s.body) or any(x is not y for x, y in zip(inner, s.body, strict=True)):
                s = replace(s, body=inner)
        r = f(s)
        out.extend(r if isinstance(r, tuple) else (r,))
    return tuple(out)


def buffers_read(block: Block) -> list[Buffer]:
    """The buffers that the block reads, each once, in order; a reduction's own buffer is not among them."""
    seen: list[Buffer] = []
    for load in loads(block.value):
        if load.buffer is not block.buffer and load.buffer not in seen:
            seen.append(load.buffer)
    return seen
