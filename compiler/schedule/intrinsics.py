"""Tensor intrinsics: what a piece of a program computes, and how it is to be computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module

import numpy as np

from ..arith import Var
from ..interpret import random_inputs, run
from ..interpret.inputs import Array
from ..ir import Binary, Block, For, InBounds, IndexValue, Load, PrimFunc, Stmt, loads, walk_expr
from ..ir.rules import REDUCERS

#: name -> module and function that makes it.
_BUILT_IN = {
    "dot_16x4_i8i8i32": ("builtin_intrinsics", "dot_i8i8i32"),
    "dot_16x4_u8i8i32": ("builtin_intrinsics", "dot_u8i8i32"),
    "dot_16x4_f32": ("builtin_intrinsics", "dot_f32"),
}
#: Random inputs on which the two programs of an intrinsic are compared.
_SEEDS = range(3)


class IntrinsicError(ValueError):
    """What is no tensor intrinsic: the reason."""


@dataclass(frozen=True, slots=True, eq=False)
class TensorIntrin:
    """A description that `tensorize` looks for, and the implementation that it puts there.

    desc, impl: programs over the same parameters: as many, of the same shapes, dtypes and directions. The
    description is one block in a perfect nest, and indexes each buffer by some of its loops, each alone. A
    reduction without an init adds to what its output held; see `accumulating`.
    """

    name: str
    desc: PrimFunc
    impl: PrimFunc


_registered: dict[str, TensorIntrin] = {}


def register_tensor_intrin(intrinsic: TensorIntrin) -> None:
    """Makes an intrinsic known by its name to `tensorize` and to traces that are replayed in this process.

    The two programs are compared on random inputs by the interpreter. Raises IntrinsicError when they differ,
    when the description is not of the form that TensorIntrin asks for, or when the name is taken.
    """
    if not isinstance(intrinsic, TensorIntrin):
        raise TypeError(f"expected a TensorIntrin, got {type(intrinsic).__name__}")
    name = intrinsic.name
    if not isinstance(name, str) or not name.isidentifier() or len(name) > 100:
        raise IntrinsicError(f"the name of an intrinsic is an identifier, got {name!r}")
    if name in known_intrinsics():
        raise IntrinsicError(f"an intrinsic named {name!r} exists already")
    check_intrinsic(intrinsic)
    _registered[name] = intrinsic


def known_intrinsics() -> list[str]:
    """The names of all intrinsics, in order."""
    return sorted([*_BUILT_IN, *_registered])


def tensor_intrin(name: str) -> TensorIntrin:
    """The intrinsic of that name. Raises IntrinsicError, which lists the known ones."""
    if name in _registered:
        return _registered[name]
    if name not in _BUILT_IN:
        raise IntrinsicError(f"unknown intrinsic {name!r}; known: {', '.join(known_intrinsics())}")
    module, function = _BUILT_IN[name]
    make: Callable[[str], TensorIntrin] = getattr(import_module(f".{module}", __package__), function)
    return make(name)


def accumulating(func: PrimFunc) -> PrimFunc:
    """The program without the inits of its reductions: it adds to what its outputs held."""

    def visit(s: Stmt) -> Stmt:
        return replace(s, init=None) if type(s) is Block and s.is_reduction else s

    return func.rewrite(visit)


def described_block(desc: PrimFunc) -> tuple[list[Var], Block]:
    """The loops and the block of a description. Raises IntrinsicError when it has another form."""
    loops: list[Var] = []
    body = desc.body
    while len(body) == 1 and type(body[0]) is For:
        loops.append(body[0].var)
        body = body[0].body
    if len(body) != 1 or type(body[0]) is not Block:
        raise IntrinsicError("a description is one block in a perfect nest")
    block = body[0]
    if [p.atom for p in block.binds] != loops or block.predicates or desc.allocs:
        raise IntrinsicError("a description is unscheduled: its loops are its iteration variables")
    if any(v.extent.const is None for v in loops):
        raise IntrinsicError("a description has constant extents")
    accesses = [Load(block.buffer, block.indices), *loads(block.value)]
    for x in accesses:
        dims = [i.atom for i in x.indices]
        sizes = [v.extent for v in dims if isinstance(v, Var)]
        if sizes != list(x.buffer.shape) or len(set(dims)) < len(dims):
            raise IntrinsicError(f"a description indexes {x.buffer.name} by some of its loops, each alone")
    if any(type(e) in (IndexValue, InBounds) for e in walk_expr(block.value)):
        raise IntrinsicError("a description computes with what its buffers hold, not with indices")
    if {x.buffer for x in accesses} != set(desc.params):
        raise IntrinsicError("a description uses all of its parameters")
    return loops, block


def check_intrinsic(intrinsic: TensorIntrin) -> None:
    """Raises IntrinsicError unless the two programs take the same arrays and make the same of them."""
    desc, impl = intrinsic.desc, intrinsic.impl
    for f in (desc, impl):
        if not isinstance(f, PrimFunc):
            raise TypeError(f"desc and impl are PrimFuncs, got {type(f).__name__}")
        if f.sizes:
            names = ", ".join(map(repr, f.sizes))
            raise IntrinsicError(f"an intrinsic has shapes of numbers, but {f.name!r} is over {names}")
    described_block(desc)
    signatures = [[(p.dtype, p.shape, p in f.outputs) for p in f.params] for f in (desc, impl)]
    if signatures[0] != signatures[1]:
        texts = [", ".join(f"{p.name}: {p.dtype}{list(p.shape)}" for p in f.params) for f in (desc, impl)]
        raise IntrinsicError(f"desc and impl differ in their parameters: ({texts[0]}) and ({texts[1]})")
    _check_accumulation(impl)
    for seed in _SEEDS:
        want, got = _random(desc, seed), _random(desc, seed)
        run(desc, want)
        run(impl, got)
        for p, x, y in zip(desc.params, want, got, strict=True):
            if not _close(desc, x, y):
                raise IntrinsicError(f"desc and impl make different things of {p.name} for random inputs")


def _check_accumulation(impl: PrimFunc) -> None:
    """A block of the implementation that goes on from what it writes combines it by a reducer: it may stand
    in a reduction loop of the program."""
    for _, b in impl.blocks():
        own = [x for x in loads(b.value) if x.buffer is b.buffer]
        v = b.value
        plain = type(v) is Binary and v.op in REDUCERS and own == [v.a] and own[0].indices == b.indices
        if own and not plain:
            reason = (
                f"{b.name!r} of the implementation reads what it writes, but does not just combine with it"
            )
            raise IntrinsicError(reason)


def _random(func: PrimFunc, seed: int) -> list[Array]:
    """Random contents for every parameter, also for outputs: a description may add to them."""
    arrays = random_inputs(func, seed)
    for n, p in enumerate(func.params):
        if p in func.outputs:
            alone = PrimFunc("f", (p,), (), ())
            arrays[n] = random_inputs(alone, seed + 17)[0]
    return arrays


def _close(desc: PrimFunc, x: Array, y: Array) -> bool:
    dtype = next(p.dtype for p in desc.outputs)
    if not dtype.is_float:
        return bool(np.array_equal(x, y))
    _, block = described_block(desc)
    steps = np.prod([v.extent.const or 1 for v in block.iters], dtype=float)
    wide_x, wide_y = x.astype(np.float64), y.astype(np.float64)
    scale = float(np.abs(wide_x).max(initial=1.0))
    return bool(
        np.allclose(wide_x, wide_y, rtol=0, atol=8 * float(steps) * dtype.eps * scale, equal_nan=True)
    )
