"""When loops are not merged."""

import pytest

from tilewright.compiler import te
from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.schedule import Schedule, ScheduleError

from .refusing import loops_of, reason_of


def test_a_refused_merge_marks_the_loop_and_names_the_line() -> None:
    a = te.placeholder((8,), "float32", name="A")
    b = te.compute((8,), lambda i: a[i] * 2, name="B")
    c = te.compute((8,), lambda j: b[7 - j] + 1, name="C")
    sch = Schedule(te.create_prim_func([a, c], name="turned"))
    with pytest.raises(ScheduleError) as caught:
        sch.merge_loops(*loops_of(sch, "B"), *loops_of(sch, "C"))
    line = caught.value.span.line if caught.value.span else 0
    assert str(caught.value) == (
        "merge_loops: 'C' reads B, and it is not proved that 'B' writes it at that place in the same "
        "iteration only\n"
        f"  at test_merge_refusals.py:{line}\n"
        "  def turned(A: float32[8], C: float32[8]):\n"
        "      B = alloc(float32[8])\n"
        "      for i in range(8):\n"
        "          B[i] = A[i] * 2.0\n"
        "      for j in range(8):\n"
        "      ^^^^^^^^^^^^^^^^^^ this loop\n"
        "          C[j] = B[-j + 7] + 1.0"
    )


def test_loops_of_different_extents_are_not_merged(matmul: PrimFunc) -> None:
    sch = Schedule(matmul)
    i, _, _ = loops_of(sch, "C")
    m, _ = sch.split(loops_of(sch, "D")[0], [5, None])
    assert reason_of(lambda: sch.merge_loops(i, m)) == (
        "merge_loops: loop 'i' has 10 iterations, 'i_0' has 5"
    )


def test_loops_that_do_not_follow_each_other_are_not_merged(matmul: PrimFunc) -> None:
    sch = Schedule(matmul)
    i, j, _ = loops_of(sch, "C")
    assert reason_of(lambda: sch.merge_loops(i, j)) == (
        "merge_loops: loop 'j' does not stand right behind 'i'"
    )
    assert reason_of(lambda: sch.merge_loops(i)) == "merge_loops: at least two loops are needed"


def test_a_loop_that_is_unrolled_already_is_not_merged(chain: PrimFunc) -> None:
    sch = Schedule(chain)
    i, m = loops_of(sch, "B")[0], loops_of(sch, "C")[0]
    sch.unroll(m)
    assert reason_of(lambda: sch.merge_loops(i, m)) == (
        "merge_loops: loop 'i' is unrolled already; merge it first"
    )


def test_a_consumer_is_not_merged_into_the_loop_that_carries_the_reduction(matmul: PrimFunc) -> None:
    sch = Schedule(matmul)
    i = sch.merge_loops(loops_of(sch, "C")[0], loops_of(sch, "D")[0])
    j = sch.merge_loops(loops_of(sch, "C")[1], loops_of(sch, "D")[1])
    unit = sch.add_unit_loop(sch.get_block("D"))
    _, _, k = loops_of(sch, "C")
    assert (i.var.extent, j.var.extent) == (10, 6)
    assert reason_of(lambda: sch.merge_loops(k, unit)) == (
        "merge_loops: loop 'k' has 8 iterations, 'u' has 1"
    )


def test_two_parts_of_a_reduction_are_not_merged(matmul: PrimFunc) -> None:
    sch = Schedule(matmul)
    first, second = sch.loop_partition(loops_of(sch, "C")[2], [4])
    assert reason_of(lambda: sch.merge_loops(first, second)) == (
        "merge_loops: 'C_1' writes C, and it is not proved that 'C' writes it at that place in the same "
        "iteration only"
    )


def test_a_shifted_read_is_not_merged() -> None:
    a = te.placeholder((9,), "float32", name="A")
    b = te.compute((9,), lambda i: a[i] * 2, name="B")
    c = te.compute((9,), lambda i: te.if_then_else(i > 0, b[i - 1], 0.0), name="C")
    sch = Schedule(te.create_prim_func([a, c], name="shifted"))
    assert reason_of(lambda: sch.merge_loops(*loops_of(sch, "B"), *loops_of(sch, "C"))) == (
        "merge_loops: 'C' reads B, and it is not proved that 'B' writes it at that place in the same "
        "iteration only"
    )
