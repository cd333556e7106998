"""When a loop is not cut into parts, and a tail is not made."""

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.compiler import te
from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.schedule import Schedule

from .refusing import loops_of, reason_of


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
