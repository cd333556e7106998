"""Each primitive: its golden text, the same meaning as before by the interpreter, and a trace that does it
again."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tilewright.compiler import interpret, te
from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.schedule import Schedule, ScheduleError
from tilewright.compiler.schedule.steps import STEPS

Steps = Callable[[Schedule], object]


def split_with_a_tail(s: Schedule) -> None:
    i, _ = s.get_loops(s.get_block("C"))
    s.split(i, factors=[None, 4])


def split_inner_inferred(s: Schedule) -> None:
    i, _ = s.get_loops(s.get_block("C"))
    s.split(i, factors=[3, None])


def split_overlapped(s: Schedule) -> None:
    i, _ = s.get_loops(s.get_block("C"))
    s.split(i, factors=[None, 4], overlap=1)


def fuse_two(s: Schedule) -> None:
    s.fuse(*s.get_loops(s.get_block("C")))


def fuse_then_split(s: Schedule) -> None:
    s.split(s.fuse(*s.get_loops(s.get_block("C"))), factors=[None, 16])


def reorder_two(s: Schedule) -> None:
    i, j = s.get_loops(s.get_block("C"))
    s.reorder(j, i)


def parallel_outer(s: Schedule) -> None:
    s.parallel(s.get_loops(s.get_block("C"))[0])


def vectorize_inner(s: Schedule) -> None:
    s.vectorize(s.get_loops(s.get_block("C"))[1])


def unroll_inner(s: Schedule) -> None:
    s.unroll(s.get_loops(s.get_block("C"))[1])


def annotate_loop_and_block(s: Schedule) -> None:
    b = s.get_block("C")
    s.annotate(b, "note", "last")
    s.annotate(s.get_loops(b)[0], "hint", 3)


def inline_the_producer(s: Schedule) -> None:
    s.compute_inline(s.get_block("B"))


def inline_the_consumer(s: Schedule) -> None:
    s.reverse_compute_inline(s.get_block("C"))


def compute_at_a_tile(s: Schedule) -> None:
    i, _ = s.get_loops(s.get_block("C"))
    i0, _ = s.split(i, factors=[None, 4])
    s.compute_at(s.get_block("B"), i0)


def compute_at_an_overlapped_tile(s: Schedule) -> None:
    i, _ = s.get_loops(s.get_block("C"))
    i0, _ = s.split(i, factors=[None, 4], overlap=1)
    s.compute_at(s.get_block("B"), i0)


def reverse_compute_at_a_tile(s: Schedule) -> None:
    i, _ = s.get_loops(s.get_block("B"))
    i0, _ = s.split(i, factors=[None, 4])
    s.reverse_compute_at(s.get_block("C"), i0)


def compute_at_a_sampled_location(s: Schedule) -> None:
    b = s.get_block("B")
    s.compute_at(b, s.sample_compute_location(b, decision=1))


CHAIN = [
    split_with_a_tail,
    split_inner_inferred,
    split_overlapped,
    fuse_two,
    fuse_then_split,
    reorder_two,
    parallel_outer,
    vectorize_inner,
    unroll_inner,
    annotate_loop_and_block,
    inline_the_producer,
    inline_the_consumer,
    compute_at_a_tile,
    compute_at_an_overlapped_tile,
    reverse_compute_at_a_tile,
    compute_at_a_sampled_location,
]


def cache_read_packed(s: Schedule) -> None:
    s.cache_read(s.get_block("C"), 1, "local", order=[1, 0])


def cache_write_register(s: Schedule) -> None:
    s.cache_write(s.get_block("D"), 0, "register")


def set_scope_register(s: Schedule) -> None:
    s.set_scope(s.get_block("C"), 0, "register")


def decompose_at_the_reduction(s: Schedule) -> None:
    b = s.get_block("C")
    s.decompose_reduction(b, s.get_loops(b)[2])


def decompose_outside_of_spatial_loops(s: Schedule) -> None:
    b = s.get_block("C")
    i, j, k = s.get_loops(b)
    s.reorder(i, k, j)
    s.decompose_reduction(b, k)


def reorder_the_reduction_outside(s: Schedule) -> None:
    i, j, k = s.get_loops(s.get_block("C"))
    s.reorder(k, i, j)


def split_the_reduction(s: Schedule) -> None:
    _, _, k = s.get_loops(s.get_block("C"))
    s.split(k, factors=[None, 3])


def register_tile(s: Schedule) -> None:
    c = s.get_block("C")
    i, j, k = s.get_loops(c)
    s.set_scope(c, 0, "register")
    i0, i1 = s.split(i, factors=[None, 4], overlap=1)
    j0, j1 = s.split(j, factors=[None, 4])
    k0, k1 = s.split(k, factors=[None, 2])
    s.reorder(i0, j0, k0, k1, i1, j1)
    s.vectorize(j1)
    s.unroll(i1)
    s.unroll(k1)
    _, dj = s.reverse_compute_at(s.get_block("D"), j0)
    s.vectorize(dj)
    s.compute_at(s.cache_read(c, 1, "local", order=[1, 0]), j0)
    s.decompose_reduction(c, k0)


MATMUL = [
    cache_read_packed,
    cache_write_register,
    set_scope_register,
    decompose_at_the_reduction,
    decompose_outside_of_spatial_loops,
    reorder_the_reduction_outside,
    split_the_reduction,
    register_tile,
]


@pytest.mark.parametrize("steps", CHAIN, ids=lambda s: s.__name__)
def test_an_elementwise_chain_keeps_its_meaning(
    chain: PrimFunc, steps: Steps, keeps_its_meaning: Callable[[PrimFunc, Steps], None]
) -> None:
    keeps_its_meaning(chain, steps)


@pytest.mark.parametrize("steps", MATMUL, ids=lambda s: s.__name__)
def test_a_matmul_keeps_its_meaning(
    matmul: PrimFunc, steps: Steps, keeps_its_meaning: Callable[[PrimFunc, Steps], None]
) -> None:
    keeps_its_meaning(matmul, steps)


def cache_read_one_access(s: Schedule) -> None:
    c = s.get_block("C")
    s.compute_at(s.cache_read(c, 0, "local", order=[1, 0], accesses=[1]), s.get_loops(c)[0])


def test_one_of_two_accesses_to_an_array_is_cached(
    keeps_its_meaning: Callable[[PrimFunc, Steps], None],
) -> None:
    a, k = te.placeholder((6, 5), "float32", name="A"), te.reduce_axis((0, 5), name="k")
    c = te.compute((6, 6), lambda i, j: te.sum(a[i, k] * a[j, k], axis=k), name="C")
    keeps_its_meaning(te.create_prim_func([a, c], name="own_product"), cache_read_one_access)


def test_every_step_that_changes_a_program_has_a_golden_text() -> None:
    golden = Path(__file__).parents[2] / "golden" / "schedule"
    texts = "".join(p.read_text() for p in sorted(golden.iterdir()))
    looking = {n for n in STEPS if n.startswith(("get_", "sample_"))}
    assert [n for n in STEPS if n not in looking and f"sch.{n}(" not in texts] == []


def test_a_cache_write_after_a_decomposed_init_writes_back_after_the_last_step(matmul: PrimFunc) -> None:
    sch = Schedule(matmul)
    c = sch.get_block("C")
    i, _, _ = sch.get_loops(c)
    sch.decompose_reduction(c, i)
    sch.cache_write(c, 0, "global")
    before, after = interpret.random_inputs(matmul, 0), interpret.random_inputs(matmul, 0)
    interpret.run(matmul, before)
    interpret.run(sch.func, after)
    np.testing.assert_array_equal(after[-1], before[-1])


def test_an_init_is_not_decomposed_outside_of_a_loop_that_repeats_the_steps() -> None:
    a = te.placeholder((4, 8), "float32", name="A")
    k = te.reduce_axis((0, 8), name="k")
    total = te.compute((4,), lambda i: te.sum(a[i, k], axis=k), name="total")
    out = te.compute((4, 6), lambda i, j: total[i] + 1, name="out")
    sch = Schedule(te.create_prim_func([a, out], name="rows"))
    i, j = sch.get_loops(sch.get_block("out"))
    block = sch.get_block("total")
    sch.compute_at(block, j)
    with pytest.raises(ScheduleError) as caught:
        sch.decompose_reduction(block, i)
    assert caught.value.reason == "steps of 'total' are repeated under loop 'i'; they would be added up anew"
