"""Every primitive over sizes keeps the meaning for all of them, or says why not."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tilewright as tw
from tilewright.compiler import interpret, te
from tilewright.compiler.ir import PrimFunc, bind_sizes
from tilewright.compiler.runtime.dims import evaluate
from tilewright.compiler.schedule import LoopRV, Schedule, ScheduleError

SIZES = (0, 1, 2, 7, 8, 31, 32, 33, 100)


def means_the_same(sch: Schedule, sizes=SIZES) -> None:
    """Compares the schedule, interpreted and compiled, with its program for these values of every size."""
    program, kernel = sch.original, tw.build(sch)
    for values in itertools.product(sizes, repeat=len(program.sizes)):
        named = dict(zip((s.name for s in program.sizes), values, strict=True))
        bound = bind_sizes(program, named)
        expected = interpret.expected(bound, interpret.random_inputs(bound, 1))
        for run in (lambda arrays, b=named: interpret.run(bind_sizes(sch.func, b), list(arrays)), kernel):
            arrays = interpret.random_inputs(bound, 1)
            run(arrays) if run is not kernel else kernel(*arrays)
            result = interpret.check(expected, arrays)
            assert result.ok, f"{named}: {result.message}\n{sch.func}"


def loops_of(sch: Schedule, block: str) -> list[LoopRV]:
    return sch.get_loops(sch.get_block(block))


def chain() -> PrimFunc:
    n = te.var("n")
    a, b = te.placeholder((n,), "float32", "A"), te.placeholder((n,), "float32", "B")
    c = te.compute((n,), lambda i: a[i] + b[i], name="C")
    d = te.compute((n,), lambda i: c[i] + c[i], name="D")
    e = te.compute((n,), lambda i: d[i] + a[i], name="E")
    return te.create_prim_func([a, b, e], name="chain")


@pytest.mark.parametrize("vectors", [False, True], ids=["loops", "vectors"])
@pytest.mark.parametrize("producer", ["where it was", "compute_at", "compute_inline"])
@pytest.mark.parametrize("consumer", ["where it was", "reverse_compute_at"])
def test_stages_of_a_chain_move_under_a_tile_of_any_length(consumer: str, producer: str, vectors: bool):
    sch = Schedule(chain())
    outer, inner = sch.split(loops_of(sch, "D")[0], [None, 32])
    lanes = [inner]
    if consumer == "reverse_compute_at":
        lanes += sch.reverse_compute_at(sch.get_block("E"), outer)
    if producer == "compute_at":
        lanes += sch.compute_at(sch.get_block("C"), outer)
    elif producer == "compute_inline":
        sch.compute_inline(sch.get_block("C"))
    for loop in lanes if vectors else ():
        sch.vectorize(loop)
    kernel = tw.build(sch)
    for n in (0, 1, 31, 32, 33, 1000, 1024):
        a, b = np.arange(n, dtype=np.float32), np.full(n, 0.5, np.float32)
        out = np.full(n, np.nan, np.float32)
        kernel(a, b, out)
        np.testing.assert_array_equal(out, (a + b) + (a + b) + a, err_msg=f"n={n}")
    means_the_same(sch)


def test_a_moved_consumer_stands_in_the_tile_that_its_producer_fills():
    sch = Schedule(chain())
    outer, _ = sch.split(loops_of(sch, "D")[0], [None, 32])
    sch.reverse_compute_at(sch.get_block("E"), outer)
    assert str(sch).split("\n", 5)[5] == (
        "    for i_0 in range(ceildiv(n, 32)):\n"
        "        for i_1 in range(32):\n"
        "            with block('D', i=spatial(i_0 * 32 + i_1, n)):\n"
        "                if i_0 * 32 + i_1 < n:\n"
        "                    D[i] = C[i] + C[i]\n"
        "        for E_i in range(32):\n"
        "            with block('E', i=spatial(i_0 * 32 + E_i, n)):\n"
        "                if i_0 * 32 < n and i_0 * 32 + E_i < n:\n"
        "                    E[i] = D[i] + A[i]\n"
    )


@pytest.mark.parametrize("overlap", [0, 1, 2])
@pytest.mark.parametrize("factors", [[None, 8], [4, None], [None, 3, 5], [2, None, 4]], ids=str)
def test_a_split_over_a_size(factors: list[int | None], overlap: int):
    sch = Schedule(chain())
    sch.split(loops_of(sch, "C")[0], factors, overlap=min(overlap, len(factors) - 1))
    means_the_same(sch)


def test_fused_and_split_again_the_loops_of_two_sizes_cover_every_element():
    m, n = te.var("m"), te.var("n")
    a = te.placeholder((m, n), "int32", "A")
    b = te.compute((m, n), lambda i, j: a[i, j] * 2, name="B")
    sch = Schedule(te.create_prim_func([a, b]))
    fused = sch.fuse(*loops_of(sch, "B"))
    _, inner = sch.split(fused, [None, 16])
    sch.vectorize(inner)
    means_the_same(sch, (0, 1, 3, 16, 17))


@pytest.mark.parametrize("factor", [512, 3136, 56, 100])
@pytest.mark.parametrize("symbolic", [False, True], ids=["56 x 56", "any size"])
def test_a_fused_square_is_split_by_a_factor_that_does_not_divide_it(symbolic: bool, factor: int):
    n = te.var("n") if symbolic else 56
    a = te.placeholder((n, n), "float32", "A")
    b = te.compute((n, n), lambda i, j: a[i, j] + 1, name="B")
    c = te.compute((n, n), lambda i, j: b[i, j] * 2, name="C")
    sch = Schedule(te.create_prim_func([a, c]))
    fused = sch.fuse(*loops_of(sch, "B"))
    outer, _ = sch.split(fused, [None, factor])
    sch.parallel(outer)
    kernel = tw.build(sch)
    for size in (0, 1, 13, 56, 57) if symbolic else (56,):
        x = np.arange(size * size, dtype=np.float32).reshape(size, size)
        out = np.full_like(x, np.nan)
        kernel(x, out)
        np.testing.assert_array_equal(out, (x + 1) * 2)


def test_a_fused_copy_of_any_size_runs_whole_tiles_first():
    m, n = te.var("m"), te.var("n")
    a = te.placeholder((m, n), "int32", "A")
    b = te.compute((n, m), lambda i, j: a[j, i] + 1, name="B")
    sch = Schedule(te.create_prim_func([a, b]))
    sch.cache_read(sch.get_block("B"), 0, "global", order=[1, 0])
    sch.split(sch.fuse(*loops_of(sch, "A_global")), [None, 16], tail="partition")
    kernel = tw.build(sch)
    # Without a whole tile, the last index of the tiles is below 0: no bound may divide it.
    for rows, columns in ((0, 3), (4, 3), (1, 16), (5, 7), (33, 2)):
        x = np.arange(rows * columns, dtype=np.int32).reshape(rows, columns)
        out = np.full((columns, rows), -7, np.int32)
        kernel(x, out)
        np.testing.assert_array_equal(out, x.T + 1)


def test_the_bounds_of_a_moved_buffer_hold_where_the_loop_that_reads_it_is_empty():
    m, n = te.var("m"), te.var("n")
    a = te.placeholder((n,), "int32", "A")
    x = te.placeholder((n, m), "int32", "X")
    s = te.compute((n,), lambda i: a[i] + 1, name="S")
    o = te.compute((m, n), lambda j, i: x[i, j] - s[i], name="O")
    sch = Schedule(te.create_prim_func([a, x, o]))
    sch.transform_layout(sch.get_block("S"), 0, lambda i: (i % 3, i // 3))
    sch.split(sch.fuse(*loops_of(sch, "O")), [None, 8], overlap=1)
    kernel = tw.build(sch)
    # The first tile begins at 0 or before, and m * n - 8 below 0 is no place to begin.
    for rows, columns in ((7, 0), (4096, 0), (0, 3), (1, 1), (5, 7)):
        (needed,) = [evaluate(w.bytes, {"n": rows, "m": columns}) for w in kernel.workspaces]
        assert needed >= 4 * rows
        given = np.arange(rows, dtype=np.int32)
        ones = np.ones((rows, columns), np.int32)
        out = np.full((columns, rows), -7, np.int32)
        kernel(given, ones, out)
        np.testing.assert_array_equal(out, ones.T - (given + 1))


def reduction() -> PrimFunc:
    m, n = te.var("m"), te.var("n")
    a = te.placeholder((m, n), "float32", "A")
    k = te.reduce_axis((0, n), "k")
    total = te.compute((m,), lambda i: te.sum(a[i, k], axis=k), name="total")
    out = te.compute((m,), lambda i: total[i] + 1, name="out")
    return te.create_prim_func([a, out], name="reduction")


@pytest.mark.parametrize("decompose", [False, True])
@pytest.mark.parametrize("k_outside", [False, True])
def test_a_reduction_over_a_size_begins_where_it_has_no_step(decompose: bool, k_outside: bool):
    sch = Schedule(reduction())
    i, k = loops_of(sch, "total")
    i_0, i_1 = sch.split(i, [None, 4])
    k_0, k_1 = sch.split(k, [None, 8])
    sch.reorder(*([i_0, k_0, i_1, k_1] if k_outside else [i_0, i_1, k_0, k_1]))
    sch.reverse_compute_at(sch.get_block("out"), i_0)
    if decompose:
        sch.decompose_reduction(sch.get_block("total"), k_0)
    means_the_same(sch, (0, 1, 3, 8, 9))


@pytest.mark.parametrize("scope", ["global", "local"])
@pytest.mark.parametrize("primitive", ["cache_read", "cache_write"])
def test_copies_of_arrays_over_sizes(primitive: str, scope: str):
    sch = Schedule(reduction())
    if primitive == "cache_read":
        copy = sch.cache_read(sch.get_block("total"), 0, scope, order=[1, 0])
        i_0, _ = sch.split(loops_of(sch, "total")[0], [None, 4])
        sch.compute_at(copy, i_0)
    else:
        copy = sch.cache_write(sch.get_block("out"), 0, scope)
        i_0, _ = sch.split(loops_of(sch, "out")[0], [None, 4])
        sch.reverse_compute_at(copy, i_0)
    means_the_same(sch, (0, 1, 3, 8, 9))


def matmul() -> PrimFunc:
    m, n, k = te.var("m"), te.var("n"), te.var("k")
    a, b = te.placeholder((m, k), "float32", "A"), te.placeholder((k, n), "float32", "B")
    axis = te.reduce_axis((0, k), "k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, axis] * b[axis, j], axis=axis), name="C")
    return te.create_prim_func([a, b, c], name="matmul")


def test_a_tile_of_registers_over_three_sizes_with_packed_columns():
    sch = Schedule(matmul())
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    i_0, i_1 = sch.split(i, [None, 4])
    j_0, j_1 = sch.split(j, [None, 16])
    sch.reorder(j_0, i_0, k, i_1, j_1)
    packed = sch.compute_at(sch.cache_read(block, 1, "global"), j_0)
    sch.vectorize(packed[-1])
    back = sch.reverse_compute_at(sch.cache_write(block, 0, "register"), i_0)
    for loop in (i_1, back[0]):
        sch.unroll(loop)
    for loop in (j_1, back[1]):
        sch.vectorize(loop)
    sch.decompose_reduction(block, k)
    means_the_same(sch, (0, 1, 4, 5, 17))


def refused(act) -> str:
    with pytest.raises(ScheduleError) as e:
        act()
    return f"{e.value.primitive}: {e.value.reason}"


@pytest.mark.parametrize(
    "primitive, what", [("vectorize", "lanes"), ("unroll", "copies")], ids=["vectorize", "unroll"]
)
def test_a_loop_over_a_size_is_neither_a_vector_nor_unrolled(primitive: str, what: str):
    sch = Schedule(chain())
    assert refused(lambda: getattr(sch, primitive)(loops_of(sch, "C")[0])) == (
        f"{primitive}: loop 'i' runs n times, which only a call tells; split it first: "
        f"the number of {what} must be a constant"
    )


def test_factors_that_may_not_cover_a_size_are_refused():
    sch = Schedule(chain())
    assert refused(lambda: sch.split(loops_of(sch, "C")[0], [4, 8])) == (
        "split: the factors [4, 8] are not known to cover all n iterations; one of them must be None"
    )


def test_a_register_buffer_over_a_size_has_no_code():
    sch = Schedule(chain())
    sch.set_scope(sch.get_block("C"), 0, "register")
    with pytest.raises(tw.BuildError) as e:
        tw.build(sch)
    assert str(e.value).startswith(
        "check_registers: register buffer C has the extent n where it is used, which only a call tells"
    )


def longer(sizes: bool) -> PrimFunc:
    """A consumer with more elements than its producer has."""
    n = te.var("n") if sizes else 8
    a = te.placeholder((n,), "float32", "A")
    b = te.compute((n,), lambda i: a[i] * 2, name="B")
    c = te.compute((n + 2,), lambda i: te.if_then_else(i < n, b[i], 7.0), name="C")
    return te.create_prim_func([a, c], name="longer")


@pytest.mark.parametrize("sizes, extent", [(False, "8"), (True, "n")])
def test_a_consumer_with_elements_of_its_own_stays(sizes: bool, extent: str):
    """Moved under its producer's loop, it would leave these elements uncomputed."""
    sch = Schedule(longer(sizes))
    outer, _ = sch.split(loops_of(sch, "B")[0], [None, 4])
    more = "n + 2" if sizes else "10"
    assert refused(lambda: sch.reverse_compute_at(sch.get_block("C"), outer)) == (
        f"reverse_compute_at: 'C' runs over {more} in 'i', and B has the extent {extent} there; "
        "it is not known to be as long, so that elements may be left out"
    )


def test_a_consumer_that_is_there_without_its_producer_stays():
    """The loop of the producer may run no iteration where the consumer has elements still."""
    m, n = te.var("m"), te.var("n")
    a, x = te.placeholder((n, m), "float32", "A"), te.placeholder((m,), "float32", "X")
    b = te.compute((n, m), lambda i, j: a[i, j] * 2, name="B")
    c = te.compute((m,), lambda j: te.if_then_else(n > 0, b[0, j], x[j]), name="C")
    sch = Schedule(te.create_prim_func([a, x, c]))
    i, _ = loops_of(sch, "B")
    assert refused(lambda: sch.reverse_compute_at(sch.get_block("C"), i)) == (
        "reverse_compute_at: loop 'i' runs n times, which may be 0 where 'C' has elements to compute"
    )
