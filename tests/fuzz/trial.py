"""One schedule on trial: the kernel's results beside those of the unscheduled program."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Protocol

import numpy as np
from guarded import Guarded
from pytest import MonkeyPatch
from workloads import WORKLOADS, Workload

import tilewright as tw
from tilewright.compiler import interpret
from tilewright.compiler.arith import Atom, Poly, poly
from tilewright.compiler.codegen.c import buffers as c_buffers
from tilewright.compiler.codegen.llvm import emitter as llvm_emitter
from tilewright.compiler.ir import (
    Block,
    Buffer,
    For,
    LoopKind,
    PrimFunc,
    Stmt,
    bind_sizes,
    rewrite,
    structural_equal,
)
from tilewright.compiler.runtime import function as runtime_function
from tilewright.compiler.runtime import packing as runtime_packing
from tilewright.compiler.schedule import Schedule, Trace
from tilewright.compiler.schedule.primitives.loops import rebind
from tilewright.compiler.target import Target

Array = np.ndarray[Any, np.dtype[Any]]
_THREADS = "-num-threads=3"


class Kernel(Protocol):
    """What a trial needs of a build: arrays -> the call, with workspaces of its own."""

    def bind(self, *arrays: Array) -> Callable[[], None]: ...


@dataclass(frozen=True, slots=True)
class Failure:
    """What must not happen. kind: `differs`, `out of bounds`, `input written`, `trace` or `crash`."""

    kind: str
    message: str


@dataclass(frozen=True, slots=True, eq=False)
class _Call:
    """Inputs and what must come of them."""

    sizes: Mapping[str, int]
    arrays: tuple[Array, ...]
    expected: interpret.Expected
    exact: bool


@cache
def program(name: str) -> PrimFunc:
    """The workload's unscheduled program."""
    return WORKLOADS[name].make()


@cache
def _calls(name: str) -> tuple[tuple[_Call, ...], ...]:
    """For each set of sizes: a call with small integers, and one with random floats."""
    workload, func = WORKLOADS[name], program(name)
    return tuple(_calls_of(workload, func, sizes) for sizes in workload.sizes or ({},))


def _calls_of(workload: Workload, func: PrimFunc, sizes: Mapping[str, int]) -> tuple[_Call, ...]:
    concrete = bind_sizes(func, sizes) if sizes else func
    calls: list[_Call] = []
    for exact, arrays in (
        (workload.exact, _integers(concrete)),
        (False, interpret.random_inputs(concrete, 1)),
    ):
        calls.append(_Call(sizes, tuple(arrays), interpret.expected(concrete, arrays), exact))
    return tuple(calls)


def _integers(func: PrimFunc) -> list[Array]:
    """Small integers, exact in every dtype; outputs poisoned."""
    rng = np.random.default_rng(7)
    outputs = func.outputs
    return [
        interpret.poisoned(p) if p in outputs else _small(p, interpret.poisoned(p).shape, rng)
        for p in func.params
    ]


def _small(buffer: Buffer, shape: Sequence[int], rng: np.random.Generator) -> Array:
    low = 0 if buffer.dtype.is_bool or buffer.dtype.code == "uint" else -4
    high = 1 if buffer.dtype.is_bool else 4
    return rng.integers(low, high + 1, shape).astype(buffer.dtype.numpy)


def judge(name: str, sch: Schedule, target: str) -> Failure | str | None:
    """None: right. A text: refused by the build, with this reason. A Failure: what must not happen.

    The trace must make an equal program from its JSON. Every call is made twice: with the arrays' ends, then
    with their starts, at a page without access; workspaces are new and poisoned for each call. Loops that may
    run at once are run from their ends as well, and parallel ones on threads where the target has them.
    """
    again = Trace.from_json(json.loads(json.dumps(sch.trace.to_json()))).apply(program(name))
    if not structural_equal(again.func, sch.func):
        return Failure("trace", "replayed from its JSON, the trace makes another program")
    # Every other program has its small buffers in workspaces too, which are poisoned and guarded.
    on_stack = len(sch.trace.instructions) % 2 == 0
    try:
        kernel = _built(sch.func, target, on_stack)
    except tw.BuildError as e:
        return str(e).split("\n", 1)[0]
    failure = _try(name, kernel, sch.func, (True, False))
    turned = _backwards(sch.func)
    if failure is None and turned is not None:
        with suppress(tw.BuildError):
            failure = _try(name, _built(turned, target, on_stack), sch.func, (True,))
            if failure is not None:
                message = f"with parallel loops from their ends, {failure.message}"
                return Failure(failure.kind, message)
        if Target.parse(target).kind == "llvm" and "num-threads" not in target:
            with suppress(tw.BuildError):
                failure = _try(name, _built(sch.func, f"{target} {_THREADS}", on_stack), sch.func, (True,))
                if failure is not None:
                    return Failure(failure.kind, f"on threads, {failure.message}")
    return failure


def _built(func: PrimFunc, target: str, on_stack: bool) -> Kernel:
    with MonkeyPatch.context() as patch:
        if not on_stack:
            for module in (llvm_emitter, c_buffers):
                patch.setattr(module, "MAX_STACK", 0)
        built: Kernel = tw.build(Schedule(func), target)
        return built


def _backwards(func: PrimFunc) -> PrimFunc | None:
    """The program with the iterations of loops that may run at once in the other order; None without any."""
    kinds = (LoopKind.PARALLEL, LoopKind.THREAD)
    if not any(f.kind in kinds for path, _ in func.blocks() for f in path):
        return None

    def visit(s: Stmt) -> Stmt:
        if type(s) is not For or s.kind not in kinds:
            return s
        values: dict[Atom, Poly] = {s.var: s.var.extent - 1 - poly(s.var)}
        return replace(s, body=rewrite(s.body, lambda b: rebind(b, values) if type(b) is Block else b))

    return func.rewrite(visit)


def _try(name: str, kernel: Kernel, func: PrimFunc, ends: Sequence[bool]) -> Failure | None:
    for calls in _calls(name):
        for call in calls:
            for at_end in ends:
                failure = _run(kernel, func, call, at_end)
                if failure is not None:
                    return failure
    return None


def _run(kernel: Kernel, func: PrimFunc, call: _Call, at_end: bool) -> Failure | None:
    memory = [Guarded(a, at_end=at_end) for a in call.arrays]
    workspaces: list[Guarded] = []

    def allocate(nbytes: int) -> Array:
        workspaces.append(Guarded.workspace(nbytes))
        return workspaces[-1].array

    try:
        with MonkeyPatch.context() as patch:
            for module in (runtime_function, runtime_packing):
                patch.setattr(module, "aligned_bytes", allocate)
            bound = kernel.bind(*(m.array for m in memory))
        bound()
        where = f" with {dict(call.sizes)}" if call.sizes else ""
        for m, p, a in zip(memory, func.params, call.arrays, strict=True):
            if not m.untouched():
                return Failure("out of bounds", f"bytes beside {p.name!r} were written{where}")
            if p not in func.outputs and m.array.tobytes() != a.tobytes():
                return Failure("input written", f"the input {p.name!r} was written{where}")
        if not all(w.untouched() for w in workspaces):
            return Failure("out of bounds", f"bytes before a workspace were written{where}")
        message = _difference([m.array for m in memory], call)
        return Failure("differs", message + where) if message else None
    finally:
        for m in (*memory, *workspaces):
            m.free()


def _difference(arrays: Sequence[Array], call: _Call) -> str:
    """Empty, or what is wrong: bit for bit for exact calls, within the tolerance for the others."""
    e = call.expected
    if call.exact:
        zeros = tuple(np.zeros(t.shape) for t in e.tolerances)
        e = interpret.Expected(e.outputs, zeros, e.names, e.positions)
    result = interpret.check(e, arrays)
    return "" if result.ok else result.message
