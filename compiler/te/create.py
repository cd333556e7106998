"""te.create_prim_func: a program from tensors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..arith import Atom, Poly, Var, poly, substitute
from ..ir.errors import VerifyError
from ..ir.expr import Binary, Buffer, Expr, Load
from ..ir.func import PrimFunc
from ..ir.span import user_span
from ..ir.stmt import Block, IterKind, Stmt, nest
from ..ir.verify import verify
from ..ir.visit import map_expr
from .errors import tensor_error
from .sizes import check_sizes
from .tensor import Stage, Tensor, check_name


def create_prim_func(params: Sequence[Tensor], name: str = "main") -> PrimFunc:
    """The program over `params`, in this order: placeholders are inputs, computed tensors are outputs, and
    what lies between them is allocated. Each stage is one block in its own loop nest, in an order in which
    what is read was written before.

    Raises TensorError for a placeholder that is used but not given, for a list without a computed tensor, and
    for a tensor given twice.
    """
    span = user_span()
    check_name(name, "te.create_prim_func")
    what = f"te.create_prim_func {name!r}"
    if isinstance(params, Tensor) or not isinstance(params, Sequence):
        raise tensor_error(
            f"{what}: the parameters are a list such as [A, B, C], got {type(params).__name__}"
        )
    for p in params:
        if not isinstance(p, Tensor):
            advice = "; a function with several results gives several: [A, *outputs]"
            got = f"{type(p).__name__}{advice if isinstance(p, tuple) else ''}"
            raise tensor_error(f"{what}: the parameters must be tensors, got {got}")
    for n, p in enumerate(params):
        if p in params[:n]:
            raise tensor_error(f"{what}: the parameter {p.name!r} is given twice")
    if all(p.stage is None for p in params):
        raise tensor_error(f"{what}: no parameter is the result of te.compute, so that there is no output")
    stages = _in_order(params, what)
    sizes = check_sizes(params, stages, what)
    buffers = _buffers([*params, *(t for t in stages if t not in params)], sizes)
    body: list[Stmt] = []
    for t in stages:
        body.extend(_block(t, buffers, sizes))
    allocs = tuple(buffers[t.buffer] for t in stages if t not in params)
    func = PrimFunc(name, tuple(buffers[p.buffer] for p in params), allocs, tuple(body), span)
    try:
        verify(func)
    except VerifyError as e:
        raise tensor_error(f"{what}: {e}") from None
    return func


def _in_order(params: Sequence[Tensor], what: str) -> list[Tensor]:
    """The computed tensors, each after those it reads."""
    order: list[Tensor] = []
    seen: set[Tensor] = set()
    # A list of tensors to visit instead of recursion: chains may be longer than Python's stack.
    todo = [(p, False) for p in reversed(params)]
    while todo:
        tensor, done = todo.pop()
        if done:
            order.append(tensor)
            continue
        if tensor in seen:
            continue
        seen.add(tensor)
        if tensor.stage is None:
            if tensor not in params:
                raise tensor_error(
                    f"{what}: the placeholder {tensor.name!r} is used but is not among the parameters"
                )
            continue
        todo.append((tensor, True))
        todo.extend((t, False) for t in reversed(tensor.stage.inputs))
    return order


def _buffers(tensors: Sequence[Tensor], sizes: Iterable[str]) -> dict[Buffer, Buffer]:
    """The buffer of each tensor in the program: its own, or a copy under a free name."""
    out: dict[Buffer, Buffer] = {}
    taken: set[str] = set(sizes)
    for t in tensors:
        name = _free(t.name, taken)
        b = t.buffer
        out[b] = b if name == b.name else replace(b, name=name)
    return out


def _free(wanted: str, taken: set[str]) -> str:
    name, n = wanted, 1
    while name in taken:
        name, n = f"{wanted}_{n}", n + 1
    taken.add(name)
    return name


def _block(tensor: Tensor, buffers: dict[Buffer, Buffer], sizes: Iterable[str]) -> tuple[Stmt, ...]:
    stage = tensor.stage
    assert stage is not None
    buffer = buffers[tensor.buffer]
    names: set[str] = set(sizes)
    # Fresh variables: one tensor may stand in several programs, one reduce axis in several stages.
    old = stage.iters + stage.axes
    new = tuple(Var(_free(v.name, names), v.extent) for v in old)
    loops = [Var(v.name, v.extent) for v in new]
    renamed: dict[Atom, Poly] = dict(zip(old, map(poly, new), strict=True))
    indices = tuple(map(poly, new[: len(stage.iters)]))
    value = map_expr(
        stage.value, lambda p: substitute(p, renamed), lambda load: Load(buffers[load.buffer], load.indices)
    )
    kinds = (IterKind.SPATIAL,) * len(stage.iters) + (IterKind.REDUCE,) * len(stage.axes)
    block = Block(
        buffer.name,
        new,
        kinds,
        tuple(map(poly, loops)),
        buffer,
        indices,
        _step(stage, buffer, indices, value),
        stage.init,
        span=stage.span,
    )
    return nest(loops, block)


def _step(stage: Stage, buffer: Buffer, indices: tuple[Poly, ...], value: Expr) -> Expr:
    if stage.reducer is None:
        return value
    return Binary(stage.reducer, Load(buffer, indices), value)  # type: ignore[arg-type]
