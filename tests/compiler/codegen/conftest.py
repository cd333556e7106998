"""Kernels built as they stand, elementwise programs, and arrays that end or begin at an unreadable page."""

import ctypes
import mmap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tilewright.compiler.arith import Var, poly
from tilewright.compiler.codegen.c import generator as c_generator
from tilewright.compiler.codegen.c.compile import find_compiler
from tilewright.compiler.codegen.errors import BuildError
from tilewright.compiler.codegen.llvm.jit import compile_ir
from tilewright.compiler.codegen.lower import lower
from tilewright.compiler.ir import (
    Block,
    Buffer,
    DType,
    Expr,
    For,
    IterKind,
    Load,
    LoopKind,
    PrimFunc,
)
from tilewright.compiler.runtime import Function
from tilewright.compiler.target import Target

Array = np.ndarray[Any, Any]
PAGE = mmap.PAGESIZE


@pytest.fixture(scope="session")
def host() -> Target:
    return Target.parse("llvm")


@pytest.fixture(scope="session")
def built(host: Target) -> Callable[..., Function]:
    """A scheduled PrimFunc as a module; keywords go to `lower`."""

    def build(func: PrimFunc, target: Target = host, **options: Any) -> Function:
        lowered = lower(func, target, **options)
        code = compile_ir(lowered.text, target, [lowered.name])
        return Function(lowered.name, lowered.params, lowered.workspaces, code)

    return build


@pytest.fixture(scope="session")
def elementwise(built: Callable[..., Function]) -> Callable[..., Array]:
    """out[i] = value(in0[i], in1[i], ...) on arrays of one dimension, in a serial or a vector loop."""

    def run(
        value: Callable[..., Expr], dtype: str, *arrays: Array, vector: bool, target: Target | None = None
    ) -> Array:
        n = arrays[0].shape[0]
        inputs = [
            Buffer(f"A{k}", (poly(n),), DType.parse(a.dtype.name), "global") for k, a in enumerate(arrays)
        ]
        out = Buffer("Out", (poly(n),), DType.parse(dtype))
        loop, it = Var("i", n), Var("i", n)
        at = (poly(it),)
        block = Block(
            "Out", (it,), (IterKind.SPATIAL,), (poly(loop),), out, at, value(*(Load(b, at) for b in inputs))
        )
        kind = LoopKind.VECTORIZED if vector else LoopKind.SERIAL
        func = PrimFunc("elementwise", (*inputs, out), (), (For(loop, (block,), kind),))
        result = np.empty(n, out.dtype.numpy)
        result.view(np.uint8)[:] = 0xAA
        module = built(func) if target is None else built(func, target)
        module(*arrays, result)
        return result

    return run


Batch = Callable[..., list[Function | BuildError]]


@pytest.fixture(scope="session", params=["llvm", "c"])
def batch(request: pytest.FixtureRequest) -> Batch:
    """Many scheduled PrimFuncs as modules of one code generator, or the error where there is no code.

    C kernels share one file, since a C compiler takes longer to start than to compile one of them.
    """
    kind: str = request.param
    if kind == "c":
        try:
            find_compiler()
        except BuildError as e:
            pytest.skip(str(e))
    return build_in_c if kind == "c" else build_in_llvm


def build_in_llvm(
    funcs: Sequence[PrimFunc], options: str = "", versioned: bool = True
) -> list[Function | BuildError]:
    target, out = Target.parse(f"llvm {options}"), list[Function | BuildError]()
    for func in funcs:
        try:
            lowered = lower(func, target, versioned=versioned)
        except BuildError as e:
            out.append(e)
            continue
        code = compile_ir(lowered.text, target, [lowered.name])
        out.append(Function(lowered.name, lowered.params, lowered.workspaces, code, sizes=lowered.sizes))
    return out


def build_in_c(
    funcs: Sequence[PrimFunc], options: str = "", versioned: bool = True
) -> list[Function | BuildError]:
    target, kernels = Target.parse(f"c {options}"), []
    for n, func in enumerate(funcs):
        try:
            kernels.append(c_generator.kernel(replace(func, name=f"kernel{n}"), target, versioned=versioned))
        except BuildError as e:
            kernels.append(e)
    whole = [k for k in kernels if not isinstance(k, BuildError)]
    code = c_generator.load_together(whole, target)
    return [
        k if isinstance(k, BuildError) else Function(k.name, k.params, k.workspaces, code, sizes=k.sizes)
        for k in kernels
    ]


class Guarded:
    """Memory with unreadable pages on both sides."""

    def __init__(self) -> None:
        self._protect = ctypes.CDLL(None, use_errno=True).mprotect
        self._protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        self._blocks: list[tuple[mmap.mmap, int, int]] = []

    def array(self, values: Array, *, at_start: bool = False) -> Array:
        """A copy of `values` that ends where an unreadable page begins, or begins where one ends."""
        pages = max(1, -(-values.nbytes // PAGE))
        memory = mmap.mmap(-1, (pages + 2) * PAGE)
        base = np.frombuffer(memory, np.uint8)
        address = base.ctypes.data
        for edge in (address, address + (pages + 1) * PAGE):
            assert self._protect(edge, PAGE, 0) == 0
        self._blocks.append((memory, address, pages))
        first = PAGE if at_start else (pages + 1) * PAGE - values.nbytes
        out = base[first : first + values.nbytes].view(values.dtype).reshape(values.shape)
        out[...] = values
        return out

    def release(self) -> None:
        """Makes the pages ordinary ones again, so that unmapping them is."""
        for _, address, pages in self._blocks:
            self._protect(address, (pages + 2) * PAGE, mmap.PROT_READ | mmap.PROT_WRITE)


@pytest.fixture
def guarded() -> Iterator[Guarded]:
    memory = Guarded()
    yield memory
    memory.release()
