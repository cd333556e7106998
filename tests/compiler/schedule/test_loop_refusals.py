"""What the primitives on loops refuse, by the whole reason, and the whole text where a loop is marked."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.compiler import te, topi
from tilewright.compiler.ir import PrimFunc, parse_script
from tilewright.compiler.schedule import BlockRV, LoopRV, Schedule, ScheduleError


def reason_of(f: Callable[[], object]) -> str:
    with pytest.raises(ScheduleError) as caught:
        f()
    assert caught.value.span is not None
    assert caught.value.span.file.endswith("test_loop_refusals.py")
    return f"{caught.value.primitive}: {caught.value.reason}"


def loops_of(s: Schedule, block: str) -> list[LoopRV]:
    return s.get_loops(s.get_block(block))


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
        f"  at test_loop_refusals.py:{line}\n"
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


@pytest.mark.parametrize("points", [[0], [10], [4, 4], [5, 2], [-10], [11]])
def test_points_rise_inside_of_the_loop(chain: PrimFunc, points: list[int]) -> None:
    sch = Schedule(chain)
    i, _ = loops_of(sch, "C")
    assert reason_of(lambda: sch.loop_partition(i, points)) == (
        f"loop_partition: the points {points} do not rise from above 0 to below the extent 10"
    )


@pytest.mark.parametrize("points", [[], 4, "4", None])
def test_points_are_a_list(chain: PrimFunc, points: Any) -> None:
    sch = Schedule(chain)
    i, _ = loops_of(sch, "C")
    assert reason_of(lambda: sch.loop_partition(i, points)) == (
        f"loop_partition: points are a list such as [8] or [-2], got {points!r}"
    )


@pytest.mark.parametrize("point", [None, 2.0, True, "k"])
def test_a_point_is_an_integer_or_a_knob(chain: PrimFunc, point: Any) -> None:
    sch = Schedule(chain)
    i, _ = loops_of(sch, "C")
    assert reason_of(lambda: sch.loop_partition(i, [point])) == (
        f"loop_partition: a point is an integer (from the end when below 0) or a knob, got {point!r}"
    )


def test_a_loop_is_not_cut_into_very_many_parts(chain: PrimFunc) -> None:
    sch = Schedule(chain)
    i, _ = loops_of(sch, "C")
    assert reason_of(lambda: sch.loop_partition(i, list(range(1, 17)))) == (
        "loop_partition: at most 16 parts are made, got 16 points"
    )


def test_a_vector_loop_is_not_partitioned(chain: PrimFunc) -> None:
    sch = Schedule(chain)
    _, j = loops_of(sch, "C")
    sch.vectorize(j)
    for step in (lambda: sch.loop_partition(j, [2]), lambda: sch.split(j, [None, 4], tail="partition")):
        assert reason_of(step).endswith(": loop 'j' is vectorized already; partition it first")


def test_a_knob_of_another_schedule_is_no_point(chain: PrimFunc) -> None:
    sch = Schedule(chain)
    i, _ = loops_of(sch, "C")
    knob = Schedule(chain).sample_categorical([2, 4], name="p")
    assert reason_of(lambda: sch.loop_partition(i, [knob])) == (
        "loop_partition: the knob 'p' was not sampled from this schedule"
    )


def test_an_unknown_tail_lists_the_known_ones(chain: PrimFunc) -> None:
    sch = Schedule(chain)
    i, _ = loops_of(sch, "C")
    assert reason_of(lambda: sch.split(i, [None, 4], tail="scalar")) == (  # type: ignore[arg-type]
        "split: unknown tail 'scalar'; known: mask, overlap, partition"
    )


def test_a_partitioned_tail_has_no_overlap(chain: PrimFunc) -> None:
    sch = Schedule(chain)
    i, _ = loops_of(sch, "C")
    assert reason_of(lambda: sch.split(i, [None, 4], overlap=1, tail="partition")) == (
        "split: a partitioned tail is a nest of its own; it has no overlap"
    )


def test_a_partition_needs_a_whole_tile(chain: PrimFunc) -> None:
    sch = Schedule(chain)
    i, _ = loops_of(sch, "C")
    assert reason_of(lambda: sch.split(i, [None, 4, 4], tail="partition")) == (
        "split: there is no whole tile of 16 in 10 iterations"
    )


def test_the_tail_of_a_partition_does_not_depend_on_knobs(chain: PrimFunc) -> None:
    sch = Schedule(chain)
    i, _ = loops_of(sch, "C")
    k = sch.sample_categorical([2, 4], name="k")
    assert reason_of(lambda: sch.split(i, [None, k], tail="partition")) == (
        "split: the tail of a partition may not depend on knobs: where there is none, there is no loop for it"
    )


def test_a_knob_whose_every_value_exceeds_the_loop_is_refused(chain: PrimFunc) -> None:
    sch = Schedule(chain)
    i, _ = loops_of(sch, "C")
    k = sch.sample_categorical([16, 32], name="k")
    assert reason_of(lambda: sch.split(i, [None, k])) == (
        "split: every value of the knob k is above the 10 iterations"
    )


def test_an_unknown_axis_lists_the_known_ones(chain: PrimFunc) -> None:
    sch = Schedule(chain)
    i, _ = loops_of(sch, "C")
    assert reason_of(lambda: sch.bind(i, "warp.x")) == (
        "bind: unknown thread axis 'warp.x'; known: blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, "
        "threadIdx.y, threadIdx.z, vthread.x, vthread.y, vthread.z, vthread"
    )


def test_an_axis_is_bound_once_around_a_block(chain: PrimFunc) -> None:
    sch = Schedule(chain)
    i, j = loops_of(sch, "C")
    sch.bind(i, "threadIdx.x")
    assert reason_of(lambda: sch.bind(j, "threadIdx.x")) == (
        "bind: loop 'i' around the same block is bound to threadIdx.x already"
    )


def test_an_axis_has_one_extent_in_all_nests(chain: PrimFunc) -> None:
    sch = Schedule(chain)
    sch.bind(loops_of(sch, "B")[0], "threadIdx.x")
    j = loops_of(sch, "C")[1]
    assert reason_of(lambda: sch.bind(j, "threadIdx.x")) == (
        "bind: loop 'j' has 6 iterations, loop 'i' on the same axis 10"
    )


def test_extents_on_an_axis_that_depend_on_knobs_are_constrained_to_be_equal(chain: PrimFunc) -> None:
    sch = Schedule(chain)
    k = sch.sample_categorical([2, 3, 6], name="k")
    _, inner = sch.split(loops_of(sch, "B")[1], [None, k])
    sch.bind(inner, "threadIdx.x")
    sch.bind(loops_of(sch, "C")[1], "threadIdx.x")
    assert [repr(p) for p in sch.constraints] == ["-k + 6", "k - 6"]


@pytest.mark.parametrize("step", ["parallel", "vectorize"])
def test_the_reduction_loop_of_a_matmul_does_not_run_side_by_side(matmul: PrimFunc, step: str) -> None:
    sch = Schedule(matmul)
    _, _, k = loops_of(sch, "C")
    word = {"vectorize": "vector"}.get(step, step)
    assert reason_of(lambda: getattr(sch, step)(k)) == (
        f"{step}: loop 'k' carries a reduction into C and cannot be a {word} loop"
    )
    assert reason_of(lambda: sch.bind(k, "threadIdx.x")) == (
        "bind: loop 'k' carries a reduction into C and cannot be a thread loop"
    )


def test_one_loop_of_a_nest_is_parallel(chain: PrimFunc) -> None:
    sch = Schedule(chain)
    i, j = loops_of(sch, "C")
    sch.parallel(i)
    assert reason_of(lambda: sch.parallel(j)) == (
        "parallel: loop 'i' around it is parallel already; fuse the two to run both so"
    )
    i, j = loops_of(sch, "B")
    sch.parallel(j)
    assert reason_of(lambda: sch.parallel(i)) == (
        "parallel: loop 'j' inside of it is parallel already; fuse the two to run both so"
    )
    assert reason_of(lambda: sch.bind(i, "blockIdx.x")) == (
        "bind: loop 'j' inside of it is parallel; a nest runs one way or the other"
    )


def test_a_bound_nest_is_not_parallel(chain: PrimFunc) -> None:
    sch = Schedule(chain)
    i, j = loops_of(sch, "C")
    sch.bind(i, "blockIdx.x")
    assert reason_of(lambda: sch.parallel(j)) == (
        "parallel: loop 'i' around it is bound to a thread axis; a nest runs one way or the other"
    )


def test_lanes_are_no_whole_loops(chain: PrimFunc) -> None:
    sch = Schedule(chain)
    i, j = loops_of(sch, "C")
    sch.vectorize(i)
    assert reason_of(lambda: sch.parallel(j)) == (
        "parallel: loop 'i' around it is a vector loop; whole loops cannot be its lanes"
    )


def test_a_loop_of_one_iteration_may_be_parallel_whatever_it_carries() -> None:
    func = topi.create({"op": "matmul", "m": 3, "n": 4, "k": 1})
    sch = Schedule(func)
    _, _, k = sch.get_loops(sch.get_block(0))
    sch.parallel(k)
    a, b = np.arange(3, dtype=np.float32)[:, None], np.arange(4, dtype=np.float32)[None]
    kernel = tw.build(sch)
    for _ in range(100):
        out = np.full((3, 4), np.nan, np.float32)
        kernel(a, b, out)
        np.testing.assert_array_equal(out, a @ b)


def test_an_annotation_that_is_not_there_is_named_with_those_that_are(chain: PrimFunc) -> None:
    sch = Schedule(chain)
    block = sch.get_block("C")
    assert reason_of(lambda: sch.unannotate(block, "note")) == (
        "unannotate: block 'C' has no annotation 'note'"
    )
    i, _ = sch.get_loops(block)
    sch.annotate(i, "hint", 1)
    assert reason_of(lambda: sch.unannotate(i, "note")) == (
        "unannotate: loop 'i' has no annotation 'note'; it has 'hint'"
    )


def test_the_axis_of_a_bound_loop_is_no_note(chain: PrimFunc) -> None:
    sch = Schedule(chain)
    i, _ = loops_of(sch, "C")
    sch.bind(i, "blockIdx.x")
    for name, step in (
        ("annotate", lambda: sch.annotate(i, "axis", "blockIdx.y")),
        ("unannotate", lambda: sch.unannotate(i, "axis")),
    ):
        assert reason_of(step) == f"{name}: loop 'i' is bound to blockIdx.x, which 'axis' says"


def test_a_note_changes_nothing_whatever_it_is_called() -> None:
    a = te.placeholder((10,), "float32", name="A")
    sch = Schedule(te.create_prim_func([a, te.compute((10,), lambda i: a[i] * 2, name="B")], name="doubled"))
    block = sch.get_block("B")
    sch.split(*sch.get_loops(block), [None, 4])
    sch.annotate(block, "free", 1)
    x, wide = np.arange(10, dtype=np.float32), np.full(32, -7, np.float32)
    tw.build(sch)(x, wide[:10])
    np.testing.assert_array_equal(wide, np.concatenate([x * 2, np.full(22, -7, np.float32)]))


def test_nothing_is_put_inside_of_a_unit(chain: PrimFunc) -> None:
    sch = Schedule(chain)
    block = sch.get_block("C")
    _, j = sch.get_loops(block)
    sch.blockize(j)
    assert reason_of(lambda: sch.add_unit_loop(block)) == (
        "add_unit_loop: 'C' belongs to the unit 'C_o', which is taken whole"
    )
    assert reason_of(lambda: sch.loop_partition(j, [2])) == (
        "loop_partition: loop 'j' belongs to the unit 'C_o', which is taken whole"
    )


def test_what_a_step_of_its_own_wrote_is_not_unannotated(chain: PrimFunc) -> None:
    sch = Schedule(chain)
    block = sch.get_block("B")
    sch.storage_align(block, 0, 0, 16, 1)
    assert reason_of(lambda: sch.unannotate(block, "align_0")) == (
        "unannotate: the key 'align_0' belongs to a step of its own"
    )


@pytest.mark.parametrize("step", ["get_producers", "get_consumers", "add_unit_loop"])
def test_a_block_of_another_schedule_is_not_looked_at(chain: PrimFunc, step: str) -> None:
    one, other = Schedule(chain), Schedule(chain)
    block = one.get_block("C")
    assert reason_of(lambda: getattr(other, step)(block)) == (
        f"{step}: expected a block of this schedule, got <block C>"
    )


def test_a_consumer_is_not_moved_under_one_part_of_what_it_reads(chain: PrimFunc) -> None:
    sch = Schedule(chain)
    first, second = sch.loop_partition(loops_of(sch, "B")[0], [8])
    consumer = sch.get_block("C")
    assert reason_of(lambda: sch.reverse_compute_at(consumer, first)) == (
        "reverse_compute_at: 'B_1' writes B after loop 'i_0'"
    )
    assert reason_of(lambda: sch.reverse_compute_at(consumer, second)) == (
        "reverse_compute_at: 'B' writes B outside of loop 'i_1'"
    )


def test_parts_that_leave_gaps_take_no_consumer() -> None:
    a = te.placeholder((16,), "float32", name="A")
    b = te.compute((16,), lambda i: a[i] + 1, name="B")
    c = te.compute((16,), lambda i: b[i] * 2, name="C")
    sch = Schedule(te.create_prim_func([a, c], name="two"))
    outer, inner = sch.split(*loops_of(sch, "B"), [2, 8])
    sch.reorder(inner, outer)
    sch.loop_partition(outer, [1])
    assert reason_of(lambda: sch.reverse_compute_at(sch.get_block("C"), inner)) == (
        "reverse_compute_at: what an iteration of loop 'i_1' writes of B is not a box without gaps"
    )


def test_a_masked_part_does_not_mask_the_consumer_of_the_whole_tile() -> None:
    a = te.placeholder((10,), "float32", name="A")
    b = te.compute((10,), lambda i: a[i] + 1, name="B")
    func = te.create_prim_func([a, te.compute((10,), lambda i: b[i] * 2, name="C")], name="two")
    sch = Schedule(func)
    outer, inner = sch.split(*loops_of(sch, "B"), [None, 4])
    sch.loop_partition(inner, [2])
    sch.reverse_compute_at(sch.get_block("C"), outer)
    x, out = np.arange(10, dtype=np.float32), np.full(10, np.nan, np.float32)
    tw.build(sch)(x, out)
    np.testing.assert_array_equal(out, (x + 1) * 2)


def test_a_consumer_is_not_inlined_before_what_it_reads() -> None:
    a = te.placeholder((8,), "float32", name="A")
    b = te.compute((8,), lambda i: a[i] + 1, name="B")
    d = te.compute((8,), lambda i: a[i] * 3, name="D")
    c = te.compute((8,), lambda i: b[i] + d[i], name="C")
    e = te.compute((8,), lambda i: c[i] * d[i], name="E")
    sch = Schedule(te.create_prim_func([a, e], name="diamond"))
    assert reason_of(lambda: sch.reverse_compute_inline(sch.get_block("C"))) == (
        "reverse_compute_inline: 'C' reads D, which 'D' writes no earlier than 'B', its producer"
    )


def test_a_transpose_is_not_inlined_backwards_into_a_reduction() -> None:
    a, b = te.placeholder((5, 3), "float32", name="A"), te.placeholder((3, 7), "float32", name="B")
    k = te.reduce_axis((0, 3), name="k")
    c = te.compute((5, 7), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    func = te.create_prim_func([a, b, te.compute((7, 5), lambda i, j: c[j, i], name="T")], name="turned")
    sch = Schedule(func)
    assert reason_of(lambda: sch.reverse_compute_inline(sch.get_block("T"))) == (
        "reverse_compute_inline: C is made by a reduction, whose steps must be over before its value is used"
    )
    i, _, _ = loops_of(sch, "C")
    sch.reverse_compute_at(sch.get_block("T"), i)
    x, y = np.arange(15, dtype=np.float32).reshape(5, 3), np.arange(21, dtype=np.float32).reshape(3, 7)
    out = np.full((7, 5), np.nan, np.float32)
    tw.build(sch)(x, y, out)
    np.testing.assert_array_equal(out, (x @ y).T)


def tiles_in_two_parts(overlap: int) -> tuple[Schedule, BlockRV]:
    """Row sums in tiles of two, the last of which stands in a loop of its own."""
    a = te.placeholder((2, 5, 4), "int32", name="A")
    k = te.reduce_axis((0, 4), name="k")
    sums = te.compute((2, 5), lambda n, o: te.sum(a[n, o, k], axis=k), name="Y")
    sch = Schedule(te.create_prim_func([a, sums], name="sums"))
    _, o, _ = sch.get_loops(sch.get_block("Y"))
    tiles, _ = sch.split(o, [None, 2], overlap=overlap)
    sch.loop_partition(tiles, [-1])
    return sch, sch.get_block("Y_1")


def test_an_init_does_not_pass_another_tile_that_overlaps() -> None:
    sch, last = tiles_in_two_parts(overlap=1)
    n, tile, _, _ = sch.get_loops(last)
    assert reason_of(lambda: sch.decompose_reduction(last, n)) == (
        "decompose_reduction: 'Y' under loop 'n' may write an element of 'Y_1', whose init would run before "
        "that; decompose at a loop inside"
    )
    sch.decompose_reduction(last, tile)
    assert_sums(sch)


def test_an_init_passes_another_tile_that_writes_other_elements() -> None:
    sch, last = tiles_in_two_parts(overlap=0)
    sch.decompose_reduction(last, sch.get_loops(last)[0])
    assert_sums(sch)


def assert_sums(sch: Schedule) -> None:
    given, out = np.arange(40, dtype=np.int32).reshape(2, 5, 4), np.full((2, 5), -1, np.int32)
    tw.build(sch)(given, out)
    np.testing.assert_array_equal(out, given.sum(2))


@pytest.mark.parametrize("step", ["parallel", "vectorize"])
@pytest.mark.parametrize(("write", "read"), [("i", "i - 1"), ("9 - i", "10 - i")])
def test_what_an_iteration_leaves_for_a_later_one_keeps_them_in_order(
    step: str, write: str, read: str
) -> None:
    """Nobody but the loop uses the buffer; still it is not each iteration's own."""
    sch = Schedule(
        parse_script(
            "def f(A: float32[10], B: float32[10]):\n"
            "    T = alloc(float32[10])\n"
            "    for i in range(10):\n"
            f"        T[{write}] = A[i] * 2.0\n"
            f"        B[i] = T[{write}] + (T[{read}] if (0 < i) else 0.0)\n"
        )
    )
    (loop,) = sch.get_loops(sch.get_block("T"))
    with pytest.raises(ScheduleError) as caught:
        getattr(sch, step)(loop)
    reason = "'T' and 'B' may use one element of T in different iterations of loop 'i'"
    assert caught.value.reason == reason
