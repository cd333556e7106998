"""A random schedule is refused with a reason, or means what the program means: interpreted and as machine
code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from shutil import which
from typing import Any, TypeGuard

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import tilewright as tw
from tilewright.compiler import interpret
from tilewright.compiler.codegen.c import generator
from tilewright.compiler.codegen.c.compile import COMPILERS
from tilewright.compiler.codegen.c.emitter import Kernel
from tilewright.compiler.ir import For, PrimFunc, Stmt, parse_script, script, structural_equal
from tilewright.compiler.runtime import Function
from tilewright.compiler.schedule import BlockRV, LoopRV, Schedule, ScheduleError, Trace
from tilewright.compiler.target import Target

STEPS = tuple(
    [
        "split",
        "split",
        "overlap",
        "reorder",
        "reorder",
        "fuse",
        "vectorize",
        "unroll",
        "parallel",
        "compute_at",
        "reverse_compute_at",
        "compute_inline",
        "reverse_compute_inline",
        "cache_read",
        "cache_write",
        "set_scope",
        "decompose_reduction",
        "rfactor",
        "reindex",
        "pad_einsum",
        "storage_align",
        "transform_layout",
        "transform_block_layout",
        "blockize",
        "partition",
        "loop_partition",
        "loop_partition",
        "merge_loops",
        "add_unit_loop",
        "bind",
        "annotate",
        "unannotate",
        "neighbours",
    ]
)
SCOPES = ("global", "local", "register")


def is_loop(s: Stmt) -> TypeGuard[For]:
    return isinstance(s, For)


class Walk:
    """Draws steps and applies them; a refused one is counted and leaves the schedule alone."""

    def __init__(self, func: PrimFunc, data: st.DataObject) -> None:
        self.sch, self.data = Schedule(func), data
        self.applied: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()

    def number(self, low: int, high: int) -> int:
        return self.data.draw(st.integers(low, high))

    def block(self) -> BlockRV:
        return self.sch.get_block(self.number(0, sum(1 for _ in self.sch.func.blocks()) - 1))

    def loops(self) -> list[LoopRV]:
        return self.sch.get_loops(self.block())

    def loop(self) -> LoopRV:
        loops = self.loops()
        if not loops:
            raise ScheduleError("test", "the block stands in no loop")
        return loops[self.number(0, len(loops) - 1)]

    def step(self) -> None:
        name = self.data.draw(st.sampled_from(STEPS))
        try:
            getattr(self, name)()
            self.applied[name] += 1
        except ScheduleError as e:
            # A person is told what, why and at which line.
            assert e.primitive == "test" or e.span is not None
            assert str(e).startswith(f"{e.primitive}: {e.reason}")
            self.refused[name] += 1

    def split(self) -> None:
        factors: list[int | None] = [self.number(1, 9) for _ in range(self.number(1, 2))]
        factors.insert(self.number(0, len(factors)), None)
        self.sch.split(self.loop(), factors)

    def overlap(self) -> None:
        self.sch.split(self.loop(), [None, self.number(1, 9)], overlap=1)

    def partition(self) -> None:
        self.sch.split(self.loop(), [None, self.number(1, 5)], tail="partition")

    def loop_partition(self) -> None:
        loop = self.loop()
        extent = loop.var.extent.const or 1
        points = {self.number(1, max(1, extent)) for _ in range(self.number(1, 2))}
        self.sch.loop_partition(loop, sorted(points))

    def merge_loops(self) -> None:
        bodies = [self.sch.func.body, *(f.body for path, _ in self.sch.func.blocks() for f in path)]
        pairs = [(a.var, b.var) for body in bodies for a, b in pairwise(body) if is_loop(a) and is_loop(b)]
        if not pairs:
            raise ScheduleError("test", "no loop stands behind another one")
        chosen = pairs[self.number(0, len(pairs) - 1)]
        loops = {x.var: x for b in self.sch.get_blocks() for x in self.sch.get_loops(b)}
        self.sch.merge_loops(*(loops[v] for v in chosen))

    def add_unit_loop(self) -> None:
        self.sch.add_unit_loop(self.loop() if self.number(0, 1) else self.block())

    def bind(self) -> None:
        self.sch.bind(self.loop(), ("blockIdx.x", "threadIdx.x", "vthread")[self.number(0, 2)])

    def annotate(self) -> None:
        self.sch.annotate(self.block(), "note", self.number(0, 3))

    def unannotate(self) -> None:
        self.sch.unannotate(self.block(), "note")

    def neighbours(self) -> None:
        block = self.block()
        for producer in self.sch.get_producers(block):
            assert block.name in [b.name for b in self.sch.get_consumers(producer)]

    def reorder(self) -> None:
        self.sch.reorder(*self.data.draw(st.permutations(self.loops())))

    def fuse(self) -> None:
        loops = self.loops()
        at = self.number(0, max(0, len(loops) - 2))
        self.sch.fuse(*loops[at : at + 2])

    def vectorize(self) -> None:
        self.sch.vectorize(self.loop())

    def unroll(self) -> None:
        self.sch.unroll(self.loop())

    def parallel(self) -> None:
        self.sch.parallel(self.loop())

    def compute_at(self) -> None:
        self.sch.compute_at(self.block(), self.loop())

    def reverse_compute_at(self) -> None:
        self.sch.reverse_compute_at(self.block(), self.loop())

    def compute_inline(self) -> None:
        self.sch.compute_inline(self.block())

    def reverse_compute_inline(self) -> None:
        self.sch.reverse_compute_inline(self.block())

    def cache_read(self) -> None:
        self.sch.cache_read(self.block(), self.number(0, 1), SCOPES[self.number(0, 2)])

    def cache_write(self) -> None:
        self.sch.cache_write(self.block(), 0, SCOPES[self.number(0, 2)])

    def set_scope(self) -> None:
        self.sch.set_scope(self.block(), 0, SCOPES[self.number(0, 2)])

    def decompose_reduction(self) -> None:
        self.sch.decompose_reduction(self.block(), self.loop())

    def rfactor(self) -> None:
        self.sch.rfactor(self.loop(), self.number(-2, 1))

    def reindex(self) -> None:
        self.sch.reindex(self.block(), ("read", "write")[self.number(0, 1)], self.number(0, 1))

    def pad_einsum(self) -> None:
        block = self.block()
        self.sch.pad_einsum(block, [self.number(1, 4) for _ in self.sch.get_loops(block)])

    def storage_align(self) -> None:
        factor = self.number(1, 9)
        self.sch.storage_align(self.block(), 0, self.number(-2, 1), factor, self.number(0, factor - 1))

    def index_map(self) -> Callable[..., list[Any]]:
        """Indices, the quotients and remainders of some of them, in any order."""
        cuts = [self.number(0, 5) for _ in range(8)]
        order = self.data.draw(st.permutations(range(16)))

        def function(*indices: Any) -> list[Any]:
            parts = [[i // c, i % c] if c else [i] for i, c in zip(indices, cuts, strict=False)]
            flat = [x for part in parts for x in part]
            return [flat[n] for n in order if n < len(flat)]

        return function

    def transform_layout(self) -> None:
        pad = (None, 0)[self.number(0, 1)]
        self.sch.transform_layout(self.block(), 0, self.index_map(), pad)

    def transform_block_layout(self) -> None:
        self.sch.transform_block_layout(self.block(), self.index_map())

    def blockize(self) -> None:
        self.sch.blockize(self.loop())


def keeps_the_meaning(program: PrimFunc, data: st.DataObject) -> None:
    walk = walked(program, data)
    try:
        kernel = tw.build(walk.sch)
    except tw.BuildError as e:
        assert str(e)
        return
    agrees(program, kernel, f"machine code: {walk.sch.trace.script()}")


def walked(program: PrimFunc, data: st.DataObject) -> Walk:
    """A random schedule, whose meaning as interpreted is that of the program."""
    walk = Walk(program, data)
    for _ in range(walk.number(1, 9)):
        walk.step()
    agrees(program, lambda *arrays: interpret.run(walk.sch.func, arrays), walk.sch.trace.script())
    again = Trace.from_json(walk.sch.trace.to_json()).apply(program)
    assert structural_equal(again.func, walk.sch.func)
    written = Schedule(program)
    exec(walk.sch.trace.script(), {"sch": written})
    assert structural_equal(written.func, walk.sch.func)
    read = parse_script(script(walk.sch.func), check=False)
    assert structural_equal(read, walk.sch.func)
    assert script(read) == script(walk.sch.func)
    return walk


def agrees(program: PrimFunc, run: Callable[..., None], note: str) -> None:
    """What it leaves in its outputs is what the program computes."""
    expected = interpret.expected(program, interpret.random_inputs(program, 1))
    arrays = interpret.random_inputs(program, 1)
    run(*arrays)
    result = interpret.check(expected, arrays)
    assert result.ok, f"{result.message}\n{note}"


def keep_the_meaning_in_c(program: PrimFunc, data: st.DataObject, count: int) -> None:
    """Schedules, whose kernels share one C file: a C compiler takes longer to start than for one of them."""
    target = Target.parse("c")
    drawn: list[tuple[Walk, Kernel]] = []
    for n in range(count):
        walk = walked(program, data)
        with suppress(tw.BuildError):
            drawn.append((walk, generator.kernel(replace(walk.sch.func, name=f"kernel{n}"), target)))
    code = generator.load_together([k for _, k in drawn], target)
    for walk, k in drawn:
        module = Function(k.name, k.params, k.workspaces, code, sizes=k.sizes)
        agrees(program, module, f"C: {walk.sch.trace.script()}\n{k.text}")


CALM = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]


@settings(max_examples=25, deadline=None, suppress_health_check=CALM)
@given(data=st.data())
def test_a_random_schedule_keeps_the_meaning(program: PrimFunc, data: st.DataObject) -> None:
    keeps_the_meaning(program, data)


@pytest.mark.slow
@pytest.mark.timeout(600)
@settings(max_examples=120, deadline=None, suppress_health_check=CALM)
@given(data=st.data())
def test_many_random_schedules_keep_the_meaning(program: PrimFunc, data: st.DataObject) -> None:
    keeps_the_meaning(program, data)


needs_a_c_compiler = pytest.mark.skipif(not any(map(which, COMPILERS)), reason="there is no C compiler")


@needs_a_c_compiler
@settings(max_examples=2, deadline=None, suppress_health_check=CALM, phases=[Phase.explicit, Phase.generate])
@given(data=st.data())
def test_random_schedules_keep_the_meaning_in_c(program: PrimFunc, data: st.DataObject) -> None:
    keep_the_meaning_in_c(program, data, 6)


@needs_a_c_compiler
@pytest.mark.slow
@pytest.mark.timeout(600)
@settings(max_examples=5, deadline=None, suppress_health_check=CALM, phases=[Phase.explicit, Phase.generate])
@given(data=st.data())
def test_many_random_schedules_keep_the_meaning_in_c(program: PrimFunc, data: st.DataObject) -> None:
    keep_the_meaning_in_c(program, data, 20)
