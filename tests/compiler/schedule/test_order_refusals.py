"""When a block is not moved past another that reads or writes the same."""

import numpy as np
import pytest

import tilewright as tw
from tilewright.compiler import te
from tilewright.compiler.ir import parse_script
from tilewright.compiler.schedule import BlockRV, Schedule, ScheduleError

from .refusing import loops_of, reason_of


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
