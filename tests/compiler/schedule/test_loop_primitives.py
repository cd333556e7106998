"""Primitives that divide, merge, add and bind loops: golden text, meaning, trace; and what each gives."""

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tilewright.compiler import interpret, te, topi
from tilewright.compiler.ir import LoopKind, PrimFunc, from_json, parse_script, structural_equal, to_json
from tilewright.compiler.schedule import BlockRV, LoopRV, Schedule, Trace

Steps = Callable[[Schedule], object]


def loops_of(s: Schedule, block: str) -> list[LoopRV]:
    return s.get_loops(s.get_block(block))


def split_partitioned(s: Schedule) -> None:
    i, j = loops_of(s, "C")
    i_0, i_1 = s.split(i, factors=[None, 4], tail="partition")
    s.reorder(i_0, j, i_1)


def split_partitioned_in_two(s: Schedule) -> None:
    s.split(loops_of(s, "C")[0], factors=[None, 2, 2], tail="partition")


def split_larger_than_the_loop(s: Schedule) -> None:
    s.split(loops_of(s, "C")[1], factors=[None, 4, 16])


def split_overlapped_by_its_tail(s: Schedule) -> None:
    s.split(loops_of(s, "C")[0], factors=[None, 4], tail="overlap")


def partition_at_two_points(s: Schedule) -> None:
    first, _, last = s.loop_partition(loops_of(s, "C")[0], points=[1, -2])
    s.unroll(first)
    s.parallel(last)


def partition_a_masked_loop(s: Schedule) -> None:
    i, _ = s.split(loops_of(s, "C")[0], factors=[None, 4])
    s.loop_partition(i, points=[2])


def partition_what_each_iteration_fills(s: Schedule) -> None:
    i, _ = s.split(loops_of(s, "C")[0], factors=[None, 4])
    s.compute_at(s.get_block("B"), i)
    s.loop_partition(i, points=[2])


def bind_two_axes(s: Schedule) -> None:
    for block in s.get_blocks():
        i, j = s.get_loops(block)
        s.bind(i, "blockIdx.x")
        s.bind(j, "threadIdx.x")


def unannotate_loop_and_block(s: Schedule) -> None:
    b = s.get_block("C")
    i, _ = s.get_loops(b)
    for at in (b, i):
        s.annotate(at, "note", "last")
        s.annotate(at, "hint", 3)
        s.unannotate(at, "note")


def add_unit_loops(s: Schedule) -> None:
    outer = s.add_unit_loop(loops_of(s, "C")[0])
    s.parallel(outer)
    s.add_unit_loop(s.get_block("C"))


def merge_two_nests(s: Schedule) -> None:
    (i, j), (k, m) = loops_of(s, "B"), loops_of(s, "C")
    s.unroll(s.merge_loops(i, k))
    s.vectorize(s.merge_loops(j, m))


def merge_then_partition(s: Schedule) -> None:
    i = s.merge_loops(loops_of(s, "B")[0], loops_of(s, "C")[0])
    s.loop_partition(i, points=[7])


def partition_around_a_unit(s: Schedule) -> None:
    i, j = loops_of(s, "C")
    s.blockize(j)
    s.loop_partition(i, points=[7])


CHAIN = [
    partition_around_a_unit,
    split_partitioned,
    split_partitioned_in_two,
    split_larger_than_the_loop,
    split_overlapped_by_its_tail,
    partition_at_two_points,
    partition_a_masked_loop,
    partition_what_each_iteration_fills,
    bind_two_axes,
    unannotate_loop_and_block,
    add_unit_loops,
    merge_two_nests,
    merge_then_partition,
]


def split_a_reduction_partitioned(s: Schedule) -> None:
    c = s.get_block("C")
    k, _ = s.split(s.get_loops(c)[2], factors=[None, 3], tail="partition")
    s.decompose_reduction(c, k)


def partition_a_reduction(s: Schedule) -> None:
    s.loop_partition(loops_of(s, "C")[2], points=[3])


def partition_around_a_reduction(s: Schedule) -> None:
    i, _, k = loops_of(s, "C")
    s.reorder(k, i)
    s.loop_partition(i, points=[-1])


def consumer_under_both_parts(s: Schedule) -> None:
    i, j, _ = loops_of(s, "C")
    s.loop_partition(j, points=[4])
    s.reverse_compute_at(s.get_block("D"), i)


def neighbours_by_data_flow(s: Schedule) -> None:
    c = s.get_block("C")
    s.decompose_reduction(c, s.get_loops(c)[2])
    init, steps = s.get_producers(s.get_block("D"))
    s.annotate(init, "role", "init")
    (begun,) = s.get_producers(steps)
    s.annotate(begun, "again", 1)
    (last,) = s.get_consumers(c)
    s.annotate(last, "role", "last")


MATMUL = [
    split_a_reduction_partitioned,
    partition_a_reduction,
    partition_around_a_reduction,
    consumer_under_both_parts,
    neighbours_by_data_flow,
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


def doubled(n: int) -> PrimFunc:
    a = te.placeholder((n,), "float32", name="A")
    return te.create_prim_func([a, te.compute((n,), lambda i: a[i] * 2, name="B")], name="doubled")


@pytest.mark.parametrize("tail", ["mask", "overlap", "partition"])
@pytest.mark.parametrize("n", [1, 7, 8, 9, 127, 129, 130])
def test_what_lies_behind_a_buffer_is_left_alone_whatever_the_tail(n: int, tail: str) -> None:
    sch = Schedule(doubled(n))
    (i,) = loops_of(sch, "B")
    sch.split(i, [None, 128], tail=tail)  # type: ignore[arg-type]
    (inner,) = sch.get_loops(sch.get_block("B"))[1:]
    _, lanes = sch.split(inner, [None, 8], tail="mask" if tail == "overlap" else tail)  # type: ignore[arg-type]
    sch.vectorize(lanes)
    a = np.arange(n, dtype=np.float32)
    wide = np.full(n + 64, -7, np.float32)
    tw.build(sch)(a, wide[:n])
    np.testing.assert_array_equal(wide, np.concatenate([a * 2, np.full(64, -7, np.float32)]))


def test_a_factor_larger_than_the_loop_is_as_long_as_the_loop() -> None:
    sch = Schedule(doubled(2))
    outer, inner = sch.split(*loops_of(sch, "B"), [None, 4])
    assert (outer.var.extent, inner.var.extent) == (1, 2)
    assert sch.func.block("B")[1].predicates == ()


def test_a_knob_that_may_exceed_the_loop_is_constrained() -> None:
    sch = Schedule(doubled(6))
    k = sch.sample_categorical([2, 4, 8], name="k")
    sch.split(*loops_of(sch, "B"), [None, k])
    assert [repr(p) for p in sch.constraints] == ["k - 6"]


def test_a_knob_that_stays_in_the_loop_is_not() -> None:
    sch = Schedule(doubled(6))
    sch.split(*loops_of(sch, "B"), [None, sch.sample_categorical([2, 3, 6], name="k")])
    assert sch.constraints == []


def test_points_that_are_knobs_rise_by_constraints() -> None:
    func = doubled(9)
    sch = Schedule(func)
    p, q = sch.sample_categorical([1, 2, 8], name="p"), sch.sample_categorical([3, 5, 9], name="q")
    sch.loop_partition(*loops_of(sch, "B"), [p, q])
    assert [repr(c) for c in sch.constraints] == ["p - q + 1", "q - 8"]
    by_hand = Schedule(func)
    by_hand.loop_partition(*loops_of(by_hand, "B"), [2, 5])
    resolved = sch.trace.resolve({"p": 2, "q": 5})
    assert resolved.canonical_json() == by_hand.trace.canonical_json()
    assert structural_equal(resolved.apply(func).func, by_hand.func)


def test_old_traces_with_overlap_are_read_and_are_what_tail_overlap_writes(chain: PrimFunc) -> None:
    steps = [
        {"do": "get_block", "block": 1, "out": ["b0"]},
        {"do": "get_loops", "block": "b0", "out": ["l0", "l1"]},
        {"do": "split", "loop": "l0", "factors": [None, 4], "overlap": 1, "out": ["l2", "l3"]},
    ]
    old = Trace.from_json({"version": 1, "steps": steps})
    sch = Schedule(chain)
    sch.split(sch.get_loops(sch.get_block("C"))[0], [None, 4], tail="overlap")
    assert sch.trace.canonical_json() == old.canonical_json()
    assert structural_equal(old.apply(chain).func, sch.func)


def names(blocks: list[BlockRV]) -> list[str]:
    return [b.name for b in blocks]


def test_blocks_are_listed_in_program_order(matmul: PrimFunc) -> None:
    sch = Schedule(matmul)
    assert names(sch.get_blocks()) == ["C", "D"]


def test_producers_and_consumers_follow_the_data_through_parts(matmul: PrimFunc) -> None:
    sch = Schedule(matmul)
    sch.loop_partition(loops_of(sch, "C")[2], [3])
    first, second, last = sch.get_blocks()
    assert names(sch.get_producers(last)) == ["C", "C_1"]
    assert names(sch.get_producers(second)) == ["C"]
    assert names(sch.get_producers(first)) == []
    assert names(sch.get_consumers(first)) == ["C_1", "D"]
    assert names(sch.get_consumers(last)) == []


@pytest.mark.parametrize("kind", list(LoopKind))
def test_a_loop_of_every_kind_is_printed_stored_interpreted_and_built(kind: LoopKind) -> None:
    func = doubled(12)
    sch = Schedule(func)
    (i,) = loops_of(sch, "B")
    match kind:
        case LoopKind.PARALLEL:
            sch.parallel(i)
        case LoopKind.VECTORIZED:
            sch.vectorize(i)
        case LoopKind.UNROLLED:
            sch.unroll(i)
        case LoopKind.THREAD:
            sch.bind(i, "threadIdx.x")
    head = {LoopKind.SERIAL: "range(12)", LoopKind.THREAD: "thread(12, axis='threadIdx.x')"}
    assert f"for i in {head.get(kind, f'{kind}(12)')}:" in str(sch)
    assert structural_equal(from_json(to_json(sch.func)), sch.func)
    assert structural_equal(parse_script(str(sch)), sch.func)
    a, b = np.arange(12, dtype=np.float32), np.zeros(12, np.float32)
    interpret.run(sch.func, [a, b])
    np.testing.assert_array_equal(b, a * 2)
    b[:] = 0
    tw.build(sch)(a, b)
    np.testing.assert_array_equal(b, a * 2)


@pytest.mark.parametrize("factor", [512, 3136, 56, 57])
def test_a_fused_loop_is_split_by_what_does_not_divide_it(factor: int) -> None:
    func = topi.create({"op": "add", "shape": [56, 56]})
    sch = Schedule(func)
    block = sch.get_blocks()[-1]
    _, inner = sch.split(sch.fuse(*sch.get_loops(block)), [None, factor])
    sch.vectorize(inner)
    expected = interpret.expected(func, interpret.random_inputs(func, 1))
    arrays = interpret.random_inputs(func, 1)
    tw.build(sch)(*arrays)
    assert interpret.check(expected, arrays).ok


def three_stages(n: int) -> PrimFunc:
    a, b = (te.placeholder((n,), "float32", name=x) for x in "AB")
    c = te.compute((n,), lambda i: a[i] + b[i], name="C")
    d = te.compute((n,), lambda i: c[i] + c[i], name="D")
    return te.create_prim_func([a, b, te.compute((n,), lambda i: d[i] + a[i], name="E")], name="three")


@pytest.mark.parametrize("n", [1, 31, 32, 33, 100, 1024])
def test_consumers_moved_under_a_split_loop_compute_everything(n: int) -> None:
    sch = Schedule(three_stages(n))
    outer, _ = sch.split(*loops_of(sch, "C"), [None, 32])
    sch.reverse_compute_at(sch.get_block("D"), outer)
    sch.reverse_compute_at(sch.get_block("E"), outer)
    x, y, out = np.arange(n, dtype=np.float32), np.ones(n, np.float32), np.zeros(n, np.float32)
    tw.build(sch)(x, y, out)
    np.testing.assert_array_equal(out, 2 * (x + y) + x)


@pytest.mark.parametrize("vector", [False, True])
@pytest.mark.parametrize("n", [33, 100, 127])
def test_a_partitioned_nest_runs_merged_stages(n: int, vector: bool) -> None:
    sch = Schedule(three_stages(n))
    loop = sch.merge_loops(*(sch.get_loops(b)[0] for b in sch.get_blocks()))
    _, inner = sch.split(loop, [None, 16], tail="partition")
    if vector:
        sch.vectorize(inner)
    x, y, out = np.arange(n, dtype=np.float32), np.ones(n, np.float32), np.zeros(n, np.float32)
    tw.build(sch)(x, y, out)
    np.testing.assert_array_equal(out, 2 * (x + y) + x)


def test_whole_tiles_of_a_size_run_without_predicates() -> None:
    n = te.var("n")
    a = te.placeholder((n,), "float32", name="A")
    sch = Schedule(te.create_prim_func([a, te.compute((n,), lambda i: a[i] * 2, name="B")], name="doubled"))
    _, lanes = sch.split(*loops_of(sch, "B"), [None, 8], tail="partition")
    sch.vectorize(lanes)
    assert str(sch) == (
        "def doubled(A: float32[n], B: float32[n]):\n"
        "    for i_0 in range(n // 8):\n"
        "        for i_1 in vectorized(8):\n"
        "            with block('B', i=spatial(i_0 * 8 + i_1, n)):\n"
        "                B[i] = A[i] * 2.0\n"
        "    for i_tail in range(n - (n // 8) * 8):\n"
        "        with block('B_1', i=spatial((n // 8) * 8 + i_tail, n)):\n"
        "            B[i] = A[i] * 2.0\n"
    )
    kernel = tw.build(sch)
    for size in (0, 1, 7, 8, 9, 130):
        x, out = np.arange(size, dtype=np.float32), np.full(size, np.nan, np.float32)
        kernel(x, out)
        np.testing.assert_array_equal(out, x * 2)


def test_a_reduction_over_a_size_is_partitioned_once_its_init_is_decomposed() -> None:
    n = te.var("n")
    a = te.placeholder((4, n), "int32", name="A")
    k = te.reduce_axis((0, n), name="k")
    func = te.create_prim_func(
        [a, te.compute((4,), lambda i: te.sum(a[i, k], axis=k), name="B")], name="rows"
    )
    sch = Schedule(func)
    block = sch.get_block("B")
    with pytest.raises(tw.ScheduleError) as caught:
        sch.split(sch.get_loops(block)[1], [None, 4], tail="partition")
    assert caught.value.reason == (
        "loop 'k' carries the reduction of 'B', which may not begin in the first part alone; "
        "decompose its init first"
    )
    sch.decompose_reduction(block, sch.get_loops(block)[1])
    sch.split(sch.get_loops(block)[1], [None, 4], tail="partition")
    kernel = tw.build(sch)
    for size in (0, 1, 3, 4, 5, 17):
        x, out = np.arange(4 * size, dtype=np.int32).reshape(4, size), np.full(4, -1, np.int32)
        kernel(x, out)
        np.testing.assert_array_equal(out, x.sum(1, dtype=np.int32))
