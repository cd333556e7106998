"""Parallel loops in generated code: what threads share, what each has of its own, and what runs in place."""

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.compiler import interpret
from tilewright.compiler.codegen.llvm import emitter
from tilewright.compiler.codegen.lower import lower
from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.schedule import Schedule, ScheduleError
from tilewright.compiler.target import Target

THREADS = [2, 3, 8]


def matmul(m: int, n: int, k: int) -> Schedule:
    a, b = te.placeholder((m, k), "float32", name="A"), te.placeholder((k, n), "float32", name="B")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    return Schedule(te.create_prim_func([a, b, c], name="matmul"))


def packed(m: int, n: int, k: int) -> Schedule:
    """A packed panel for each tile of columns, whose tiles are parallel."""
    sch = matmul(m, n, k)
    c = sch.get_block("C")
    panel = sch.cache_read(c, 1, "local")
    i, j, r = sch.get_loops(c)
    j0, j1 = sch.split(j, [None, 16])
    sch.reorder(j0, i, r, j1)
    sch.vectorize(j1)
    sch.compute_at(panel, j0)
    sch.parallel(j0)
    sch.decompose_reduction(c, r)
    return sch


def tiled(m: int, n: int, k: int) -> Schedule:
    """Overlapped register tiles, the tiles of both dimensions fused and parallel."""
    sch = matmul(m, n, k)
    c = sch.get_block("C")
    out = sch.cache_write(c, 0, "register")
    i, j, r = sch.get_loops(c)
    i0, i1 = sch.split(i, [None, min(4, m)], overlap=1)
    j0, j1 = sch.split(j, [None, min(16, n)], overlap=1)
    sch.reorder(i0, j0, r, i1, j1)
    sch.unroll(i1)
    sch.vectorize(j1)
    rows, columns = sch.reverse_compute_at(out, j0)
    sch.unroll(rows)
    sch.vectorize(columns)
    sch.decompose_reduction(c, r)
    sch.parallel(sch.fuse(i0, j0))
    return sch


def inside(m: int, n: int, k: int) -> Schedule:
    """A parallel loop inside of a serial one, with a vector loop inside."""
    sch = matmul(m, n, k)
    c = sch.get_block("C")
    i, j, r = sch.get_loops(c)
    j0, j1 = sch.split(j, [None, 8])
    sch.reorder(r, i, j0, j1)
    sch.vectorize(j1)
    sch.decompose_reduction(c, r)
    sch.parallel(i)
    return sch


def copies(m: int, n: int, k: int) -> Schedule:
    """A parallel loop that is emitted once for each iteration of an unrolled loop around."""
    sch = matmul(m, n, k)
    i, _, r = sch.get_loops(sch.get_block("C"))
    sch.decompose_reduction(sch.get_block("C"), r)
    i0, i1 = sch.split(i, [3, None])
    sch.unroll(i0)
    sch.parallel(i1)
    return sch


def two_nests(m: int, n: int, k: int) -> Schedule:
    """A workspace that one parallel loop fills and another one reads."""
    a, b = te.placeholder((m, k), "float32", name="A"), te.placeholder((k, n), "float32", name="B")
    d = te.compute((m, k), lambda i, j: a[i, j] * 0.5, name="D")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute((m, n), lambda i, j: te.sum(d[i, r] * b[r, j], axis=r) + 1.0, name="C")
    sch = Schedule(te.create_prim_func([a, b, c], name="nests"))
    for _, block in list(sch.func.blocks()):
        sch.parallel(sch.get_loops(sch.get_block(block.name))[0])
    return sch


SCHEDULES: list[Callable[[int, int, int], Schedule]] = [packed, tiled, inside, copies, two_nests]


def right(sch: Schedule, threads: int) -> None:
    """As NumPy says, and bit for bit as one thread computes it."""
    one, kernel = (tw.build(sch, f"llvm -num-threads={n}") for n in (1, threads))
    a, b, c = interpret.random_inputs(sch.func, 0)
    one(a, b, c)
    product = (0.5 * a) @ b + 1 if sch.func.name == "nests" else a @ b
    np.testing.assert_allclose(c, product, rtol=1e-4, atol=1e-4)
    for _ in range(3):
        again = np.full_like(c, np.nan)
        kernel(a, b, again)
        np.testing.assert_array_equal(again, c)


@pytest.mark.parametrize("shape", [(5, 7, 3), (37, 50, 64), (64, 64, 16), (1, 33, 5), (129, 17, 31)], ids=str)
@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("make", SCHEDULES)
def test_threads_compute_what_one_does(
    make: Callable[[int, int, int], Schedule], threads: int, shape: tuple[int, int, int]
) -> None:
    right(make(*shape), threads)


@pytest.mark.parametrize("make", SCHEDULES)
def test_private_buffers_may_be_parts_of_workspaces(
    make: Callable[[int, int, int], Schedule], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(emitter, "MAX_STACK", 0)
    right(make(37, 50, 64), 3)


def test_each_thread_has_its_part_of_a_workspace() -> None:
    """A panel of 1001 x 16 elements does not fit a thread's stack."""
    func = packed(8, 50, 1001).func
    one, three = (lower(func, Target.parse(f"llvm -num-threads={n}")) for n in (1, 3))
    assert [w.bytes for w in one.workspaces] == [1001 * 64]
    assert [w.bytes for w in three.workspaces] == [3 * 1001 * 64]
    right(packed(8, 50, 1001), 3)


def over_sizes() -> Schedule:
    n, m = te.var("n"), te.var("m")
    a = te.placeholder((n, m), "float32", name="A")
    d = te.compute((n, m), lambda i, j: a[i, j] * 2.0, name="D")
    k = te.reduce_axis((0, m), name="k")
    s = te.compute((n,), lambda i: te.sum(d[i, k], axis=k), name="S")
    sch = Schedule(te.create_prim_func([a, s], name="rows"))
    i, _ = sch.get_loops(sch.get_block("S"))
    sch.compute_at(sch.get_block("D"), i)
    sch.parallel(i)
    return sch


@pytest.mark.parametrize("shape", [(0, 5), (1, 1), (9, 17), (50, 3)], ids=str)
def test_sizes_and_parts_of_workspaces_are_known_at_the_call(shape: tuple[int, int]) -> None:
    kernel = tw.build(over_sizes(), "llvm -num-threads=3")
    a, s = np.random.default_rng(0).random(shape, np.float32), np.full(shape[0], np.nan, np.float32)
    kernel(a, s)
    np.testing.assert_allclose(s, 2 * a.sum(axis=1), rtol=1e-5)


def scaled() -> Schedule:
    a = te.placeholder((6, 4), "float32", name="A")
    func = te.create_prim_func([a, te.compute((6, 4), lambda i, j: a[i, j] * 2.0, name="B")], name="scaled")
    sch = Schedule(func)
    i, j = sch.get_loops(sch.get_block("B"))
    sch.parallel(i)
    sch.vectorize(j)
    return sch


def test_a_parallel_loop_is_a_function_that_the_pool_calls() -> None:
    text = lower(scaled().func, Target.parse("llvm -mcpu=x86-64-v3 -num-threads=2")).text
    assert (
        text
        == """\
declare void @tilewright_parallel(ptr, ptr, i64, i64)
define internal void @tw.scaled.loop1(ptr noalias %b1_B, ptr noalias %b0_A, i64 %begin, i64 %end) nounwind {
entry:
  br label %h2
h2:
  %t3 = phi i64 [ %begin, %entry ], [ %t9, %h2 ]
  %t4 = mul nsw i64 %t3, 4
  %t5 = getelementptr float, ptr %b0_A, i64 %t4
  %t6 = load <4 x float>, ptr %t5, align 4
  %t7 = fmul contract <4 x float> %t6, splat (float 0x4000000000000000)
  %t8 = getelementptr float, ptr %b1_B, i64 %t4
  store <4 x float> %t7, ptr %t8, align 4
  %t9 = add nuw nsw i64 %t3, 1
  %t10 = icmp slt i64 %t9, %end
  br i1 %t10, label %h2, label %x2
x2:
  ret void
}
define internal void @tw.scaled.piece1(i64 %begin, i64 %end, i64 %thread, ptr %context) nounwind {
  %p0 = getelementptr i64, ptr %context, i64 0
  %v0 = load ptr, ptr %p0, align 8
  %p1 = getelementptr i64, ptr %context, i64 1
  %v1 = load ptr, ptr %p1, align 8
  call void @tw.scaled.loop1(ptr %v0, ptr %v1, i64 %begin, i64 %end)
  ret void
}
define void @scaled(ptr noalias %b0_A, ptr noalias %b1_B) nounwind {
entry:
  %context1 = alloca [2 x i64], align 64
  store ptr %b1_B, ptr %context1, align 8
  %t11 = getelementptr i64, ptr %context1, i64 1
  store ptr %b0_A, ptr %t11, align 8
  call void @tilewright_parallel(ptr @tw.scaled.piece1, ptr %context1, i64 6, i64 2)
  ret void
}
"""
    )


def serial(sch: Schedule) -> PrimFunc:
    """The same steps without `parallel`."""
    trace = sch.trace
    kept = tuple(i for i in trace.instructions if i.name != "parallel")
    return type(trace)(kept).apply(matmul(37, 50, 64).func).func


def test_for_one_thread_a_parallel_loop_is_a_serial_one() -> None:
    one = Target.parse("llvm")
    sch = packed(37, 50, 64)
    assert lower(sch.func, one).text == lower(serial(sch), one).text


def test_a_loop_whose_iterations_would_share_registers_runs_in_place() -> None:
    a, b = te.placeholder((1,), "float32", name="A"), te.placeholder((6, 4), "float32", name="B")
    c = te.compute((6, 4), lambda i, j: b[i, j] * a[0], name="C")
    sch = Schedule(te.create_prim_func([a, b, c], name="scaled"))
    block = sch.get_block("C")
    sch.cache_read(block, 1, "register")
    sch.parallel(sch.get_loops(block)[0])
    assert "@tilewright_parallel" not in lower(sch.func, Target.parse("llvm -num-threads=2")).text
    x, y, z = interpret.random_inputs(sch.func, 0)
    tw.build(sch, "llvm -num-threads=2")(x, y, z)
    np.testing.assert_array_equal(z, y * x)


def test_overlapped_tiles_that_are_summed_in_memory_cannot_be_parallel() -> None:
    sch = matmul(37, 50, 64)
    c = sch.get_block("C")
    i, j, r = sch.get_loops(c)
    i0, i1 = sch.split(i, [None, 8], overlap=1)
    sch.reorder(i0, r, i1, j)
    sch.decompose_reduction(c, r)
    with pytest.raises(ScheduleError, match="iterations of loop 'i_0' overlap in C"):
        sch.parallel(i0)


def test_a_loop_that_carries_a_reduction_cannot_be_parallel() -> None:
    sch = matmul(5, 6, 7)
    with pytest.raises(ScheduleError, match="carries a reduction into C and cannot be a parallel loop"):
        sch.parallel(sch.get_loops(sch.get_block("C"))[2])


def test_generated_c_runs_parallel_loops_in_order() -> None:
    kernel = tw.build(scaled(), "c -num-threads=2")
    assert "/* parallel */" not in str(kernel.source())
    a, b = np.ones((6, 4), np.float32), np.zeros((6, 4), np.float32)
    kernel(a, b)
    np.testing.assert_array_equal(b, 2 * a)
