"""A random schedule of a program over sizes is refused with a reason, or means what the program means for
every size: interpreted and as machine code, which writes nowhere else."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from shutil import which

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import tilewright as tw
from tilewright.compiler import interpret
from tilewright.compiler.codegen.c import generator
from tilewright.compiler.codegen.c.compile import COMPILERS
from tilewright.compiler.codegen.c.emitter import Kernel
from tilewright.compiler.ir import PrimFunc, bind_sizes, parse_script, script, structural_equal
from tilewright.compiler.runtime import Function
from tilewright.compiler.schedule import Schedule, ScheduleError, Trace
from tilewright.compiler.target import Target

SCOPES = ("global", "local", "register")
SIZES = (0, 1, 2, 3, 5, 7, 8, 13, 17)
STEPS = (
    ["split"] * 5
    + ["vectors"] * 3
    + ["overlap", "fuse", "reorder", "reorder", "vectorize", "vectorize", "unroll", "parallel"]
    + ["compute_at", "reverse_compute_at"] * 2
    + ["compute_inline", "reverse_compute_inline", "cache_read", "cache_write", "set_scope"]
    + ["decompose_reduction", "rfactor", "rfactor", "partition", "loop_partition", "merge_loops", "blockize"]
    + ["add_unit_loop", "bind", "reindex", "pad_einsum", "storage_align"]
    + ["transform_layout", "transform_block_layout"]
)


def step(sch: Schedule, name: str, number) -> None:
    """One step at a random place; `number(low, high)` draws."""
    block = sch.get_block(number(0, sum(1 for _ in sch.func.blocks()) - 1))
    loops = sch.get_loops(block)
    if not loops:
        raise ScheduleError("test", "the block stands in no loop")
    loop = loops[number(0, len(loops) - 1)]
    match name:
        case "split":
            factors: list[int | None] = [number(1, 9) for _ in range(number(1, 2))]
            factors.insert(number(0, len(factors)), None)
            sch.split(loop, factors)
        case "vectors":
            sch.vectorize(sch.split(loop, [None, number(1, 9)])[1])
        case "overlap":
            sch.split(loop, [None, number(1, 9)], overlap=1)
        case "partition":
            sch.split(loop, [None, number(1, 9)], tail="partition")
        case "loop_partition":
            sch.loop_partition(loop, [number(-3, 5)])
        case "merge_loops":
            others = [sch.get_loops(b) for b in sch.get_blocks()]
            depth = loops.index(loop)
            sch.merge_loops(
                loop, *(x[depth] for x in others if len(x) > depth and x[depth].var is not loop.var)
            )
        case "bind":
            sch.bind(loop, ("blockIdx.x", "threadIdx.x")[number(0, 1)])
        case "fuse":
            at = number(0, max(0, len(loops) - 2))
            sch.fuse(*loops[at : at + 2])
        case "reorder":
            order = sorted(loops, key=lambda _: number(0, 99))
            sch.reorder(*order)
        case "rfactor":
            sch.rfactor(loop, number(0, 1))
        case "reindex":
            sch.reindex(block, ("read", "write")[number(0, 1)], number(0, 1))
        case "pad_einsum":
            sch.pad_einsum(block, [number(1, 4) for _ in loops])
        case "storage_align":
            sch.storage_align(block, 0, number(0, 1), 8, number(0, 3))
        case "transform_layout":
            sch.transform_layout(block, 0, layout(number), (None, 0)[number(0, 1)])
        case "transform_block_layout":
            sch.transform_block_layout(block, layout(number))
        case "compute_at" | "reverse_compute_at":
            other = sch.get_block(number(0, sum(1 for _ in sch.func.blocks()) - 1))
            getattr(sch, name)(other, loop)
        case "cache_read":
            sch.cache_read(block, number(0, 1), SCOPES[number(0, 2)])
        case "cache_write" | "set_scope":
            getattr(sch, name)(block, 0, SCOPES[number(0, 2)])
        case "decompose_reduction":
            sch.decompose_reduction(block, loop)
        case "compute_inline" | "reverse_compute_inline":
            getattr(sch, name)(block)
        case _:
            getattr(sch, name)(loop)


PATTERN = 0x5A
MARGIN = 128


def layout(number):
    """A map of indices: reversed, or with the last one in two pieces, the inner of which may come first."""
    kind, size = number(0, 2), number(1, 5)

    def map_(*at):
        if kind == 0:
            return at[::-1]
        pieces = at[-1] // size, at[-1] % size
        return (pieces[1], *at[:-1], pieces[0]) if kind == 1 else (*at[:-1], *pieces)

    return map_


def within(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Memory whose bytes are a pattern, and `count` bytes in the middle of it."""
    memory = np.full(count + 64 + 2 * MARGIN, PATTERN, np.uint8)
    start = MARGIN - memory.ctypes.data % 64
    return memory, memory[start : start + count]


def is_whole(memory: np.ndarray, inside: np.ndarray) -> bool:
    """Whether the bytes around are the pattern still."""
    start = inside.ctypes.data - memory.ctypes.data
    return bool((memory[:start] == PATTERN).all() and (memory[start + inside.nbytes :] == PATTERN).all())


def keeps_the_meaning(program: PrimFunc, number) -> None:
    """Applies steps that `number(low, high)` draws, and compares with the program for some sizes."""
    sch = drawn(program, number)
    try:
        kernel = tw.build(sch)
    except tw.BuildError as e:
        assert str(e)
        kernel = None
    agrees(program, sch, kernel, number)


def keep_the_meaning_in_c(program: PrimFunc, number, count: int) -> None:
    """The same of several schedules, whose kernels share one C file."""
    target = Target.parse("c")
    kernels: list[tuple[Schedule, Kernel]] = []
    for n in range(count):
        sch = drawn(program, number)
        with suppress(tw.BuildError):
            kernels.append((sch, generator.kernel(replace(sch.func, name=f"kernel{n}"), target)))
    code = generator.load_together([k for _, k in kernels], target)
    for sch, k in kernels:
        agrees(program, sch, Function(k.name, k.params, k.workspaces, code, sizes=k.sizes), number)


def drawn(program: PrimFunc, number) -> Schedule:
    """A random schedule."""
    sch = Schedule(program)
    for _ in range(number(1, 9)):
        try:
            step(sch, STEPS[number(0, len(STEPS) - 1)], number)
        except ScheduleError as e:
            assert e.reason
    assert structural_equal(Trace.from_json(sch.trace.to_json()).apply(program).func, sch.func)
    read = parse_script(script(sch.func), check=False)
    assert structural_equal(read, sch.func)
    assert script(read) == script(sch.func)
    return sch


def agrees(program: PrimFunc, sch: Schedule, kernel: Function | None, number) -> None:
    """The schedule, interpreted and as a kernel, means what the program means for some sizes."""
    for _ in range(4):
        sizes = {s.name: SIZES[number(0, len(SIZES) - 1)] for s in program.sizes}
        bound = bind_sizes(program, sizes)
        expected = interpret.expected(bound, interpret.random_inputs(bound, 1))
        arrays = interpret.random_inputs(bound, 1)
        interpret.run(bind_sizes(sch.func, sizes), arrays)
        result = interpret.check(expected, arrays)
        assert result.ok, f"interpreted, {sizes}: {result.message}\n{sch.trace.script()}\n{sch.func}"
        if kernel is None:
            continue
        made: list[tuple[np.ndarray, np.ndarray]] = []

        def memory(count: int, made=made) -> np.ndarray:
            made.append(within(count))
            return made[-1][1]

        arrays = []
        for a in interpret.random_inputs(bound, 1):
            arrays.append(memory(a.nbytes).view(a.dtype).reshape(a.shape))
            arrays[-1][...] = a
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("tilewright.compiler.runtime.function.aligned_bytes", memory)
            kernel.bind(*arrays)()
        result = interpret.check(expected, arrays)
        assert result.ok, f"machine code, {sizes}: {result.message}\n{sch.trace.script()}\n{sch.func}"
        assert all(is_whole(*m) for m in made), f"written outside, {sizes}\n{sch.trace.script()}\n{sch.func}"


CALM = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]


@settings(max_examples=12, deadline=None, suppress_health_check=CALM)
@given(data=st.data())
def test_a_random_schedule_means_the_same_for_every_size(program: PrimFunc, data: st.DataObject) -> None:
    keeps_the_meaning(program, lambda low, high: data.draw(st.integers(low, high)))


@pytest.mark.slow
@pytest.mark.timeout(600)
@settings(max_examples=100, deadline=None, suppress_health_check=CALM)
@given(data=st.data())
def test_many_random_schedules_mean_the_same_for_every_size(program: PrimFunc, data: st.DataObject) -> None:
    keeps_the_meaning(program, lambda low, high: data.draw(st.integers(low, high)))


needs_a_c_compiler = pytest.mark.skipif(not any(map(which, COMPILERS)), reason="there is no C compiler")


@needs_a_c_compiler
@settings(max_examples=2, deadline=None, suppress_health_check=CALM, phases=[Phase.explicit, Phase.generate])
@given(data=st.data())
def test_random_schedules_in_c_mean_the_same_for_every_size(program: PrimFunc, data: st.DataObject) -> None:
    keep_the_meaning_in_c(program, lambda low, high: data.draw(st.integers(low, high)), 5)


@needs_a_c_compiler
@pytest.mark.slow
@pytest.mark.timeout(600)
@settings(max_examples=6, deadline=None, suppress_health_check=CALM, phases=[Phase.explicit, Phase.generate])
@given(data=st.data())
def test_many_in_c_mean_the_same_for_every_size(program: PrimFunc, data: st.DataObject) -> None:
    keep_the_meaning_in_c(program, lambda low, high: data.draw(st.integers(low, high)), 15)
