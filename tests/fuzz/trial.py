"""One schedule on trial: the kernel's results beside those of the unscheduled program."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from guarded import Guarded, Workspaces
from workloads import WORKLOADS, Workload

import tilewright as tw
from tilewright.compiler import interpret
from tilewright.compiler.ir import Buffer, PrimFunc, bind_sizes, structural_equal
from tilewright.compiler.schedule import Schedule, Trace

Array = np.ndarray[Any, np.dtype[Any]]


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
    with their starts, at a page without access.
    """
    again = Trace.from_json(json.loads(json.dumps(sch.trace.to_json()))).apply(program(name))
    if not structural_equal(again.func, sch.func):
        return Failure("trace", "replayed from its JSON, the trace makes another program")
    try:
        kernel = tw.build(sch, target)
    except tw.BuildError as e:
        return str(e).split("\n", 1)[0]
    with Workspaces() as workspaces:
        for calls in _calls(name):
            for call in calls:
                for at_end in (True, False):
                    failure = _run(kernel, sch.func, call, at_end)
                    if failure is None and not workspaces.untouched():
                        where = f" with {dict(call.sizes)}" if call.sizes else ""
                        failure = Failure("out of bounds", f"bytes beside a workspace were written{where}")
                    if failure is not None:
                        return failure
    return None


def _run(kernel: Callable[..., None], func: PrimFunc, call: _Call, at_end: bool) -> Failure | None:
    memory = [Guarded(a, at_end=at_end) for a in call.arrays]
    try:
        kernel(*(m.array for m in memory))
        where = f" with {dict(call.sizes)}" if call.sizes else ""
        for m, p, a in zip(memory, func.params, call.arrays, strict=True):
            if not m.untouched():
                return Failure("out of bounds", f"bytes beside {p.name!r} were written{where}")
            if p not in func.outputs and m.array.tobytes() != a.tobytes():
                return Failure("input written", f"the input {p.name!r} was written{where}")
        message = _difference([m.array for m in memory], call)
        return Failure("differs", message + where) if message else None
    finally:
        for m in memory:
            m.free()


def _difference(arrays: Sequence[Array], call: _Call) -> str:
    """Empty, or what is wrong: bit for bit for exact calls, within the tolerance for the others."""
    e = call.expected
    if call.exact:
        zeros = tuple(np.zeros(t.shape) for t in e.tolerances)
        e = interpret.Expected(e.outputs, zeros, e.names, e.positions)
    result = interpret.check(e, arrays)
    return "" if result.ok else result.message
