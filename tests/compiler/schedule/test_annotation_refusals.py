"""When a loop is not bound, parallel or annotated."""

import numpy as np
import pytest

import tilewright as tw
from tilewright.compiler import te, topi
from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.schedule import Schedule

from .refusing import loops_of, reason_of


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
