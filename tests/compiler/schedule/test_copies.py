"""reindex and pad_einsum: accesses and domains through copies; what is refused."""

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tilewright.compiler import interpret, te, topi
from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.schedule import Schedule

from .refusing import reason_of

Keeps = Callable[[PrimFunc, Callable[[Schedule], object]], None]
Steps = Callable[[Schedule], object]


def reindex_a_read(s: Schedule) -> None:
    s.reindex(s.get_block("C"), "read", 1)


def reindex_a_write(s: Schedule) -> None:
    s.reindex(s.get_block("C"), "write", 0)


def reindex_both_and_tile(s: Schedule) -> None:
    c = s.get_block("C")
    packed = s.reindex(c, "read", 0)
    s.reindex(c, "write", 0)
    i, j, k = s.get_loops(c)
    i0, i1 = s.split(i, [None, 4])
    s.reorder(i0, k, i1, j)
    s.vectorize(j)
    s.compute_at(packed, i0)


def pad_einsum_all(s: Schedule) -> None:
    s.pad_einsum(s.get_block("C"), [4, 4, 3])


def pad_einsum_the_reduction(s: Schedule) -> None:
    s.pad_einsum(s.get_block("C"), [1, 1, 3])


def pad_einsum_and_tile(s: Schedule) -> None:
    c = s.get_block("C")
    s.pad_einsum(c, [4, 8, 1])
    i, j, k = s.get_loops(c)
    i0, i1 = s.split(i, [None, 4])
    s.reorder(i0, k, i1, j)
    s.unroll(i1)
    s.vectorize(j)
    s.set_scope(c, 0, "register")
    s.compute_at(s.get_block("A_pad"), i0)
    rows, columns = s.reverse_compute_at(s.get_block("C_unpad"), i0)
    s.unroll(rows)
    s.vectorize(columns)


@pytest.mark.parametrize(
    "steps",
    [reindex_a_read, reindex_a_write, reindex_both_and_tile, pad_einsum_all, pad_einsum_the_reduction],
    ids=lambda s: s.__name__,
)
def test_a_matmul_through_copies(matmul: PrimFunc, steps: Steps, keeps_its_meaning: Keeps) -> None:
    keeps_its_meaning(matmul, steps)


def convolution() -> PrimFunc:
    return topi.create(
        {"op": "conv2d", "ci": 3, "h": 6, "w": 5, "co": 4, "kh": 3, "kw": 3, "pad": 1, "stride": 2}
    )


def reindex_an_image_to_columns(s: Schedule) -> None:
    s.reindex(s.get_block("Y"), "read", 1)


def test_a_padded_convolution_through_columns(keeps_its_meaning: Keeps) -> None:
    keeps_its_meaning(convolution(), reindex_an_image_to_columns)


def equal(func: PrimFunc, sch: Schedule) -> None:
    expected = interpret.expected(func, interpret.random_inputs(func, 0))
    for run in (lambda arrays: interpret.run(sch.func, arrays), lambda arrays: tw.build(sch)(*arrays)):
        arrays = interpret.random_inputs(func, 0)
        run(arrays)
        result = interpret.check(expected, arrays)
        assert result.ok, result.message


@pytest.mark.parametrize("dtype", ["int8", "float32", "float64", "int32"])
@pytest.mark.parametrize("padding", [[4, 4, 4], [2, 16, 1], [1, 1, 8], [7, 1, 5]])
def test_a_padded_matmul_of_odd_shapes_equals_the_reference(dtype: str, padding: list[int]) -> None:
    func = topi.create({"op": "matmul", "m": 5, "n": 11, "k": 7, "dtype": dtype})
    sch = Schedule(func)
    sch.pad_einsum(sch.get_block(0), padding)
    equal(func, sch)


def test_a_longer_input_is_cut_where_the_sum_ends() -> None:
    a = te.placeholder((9,), "float32", name="A")
    k = te.reduce_axis((0, 5), name="k")
    s = te.compute((2,), lambda i: te.sum(a[k] * a[k], axis=k), name="S")
    func = te.create_prim_func([a, s], name="f")
    sch = Schedule(func)
    sch.pad_einsum(sch.get_block("S"), [3, 4])
    equal(func, sch)


def test_infinite_inputs_stay_where_they_are() -> None:
    func = topi.create({"op": "matmul", "m": 3, "n": 3, "k": 3})
    sch = Schedule(func)
    sch.pad_einsum(sch.get_block(0), [4, 4, 4])
    a, b = np.ones((3, 3), "float32"), np.ones((3, 3), "float32")
    a[1, 2], b[0, 1] = np.inf, -np.inf
    out = np.empty((3, 3), "float32")
    tw.build(sch)(a, b, out)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(out, a @ b)


def test_a_write_at_every_other_element_is_reindexed() -> None:
    from dataclasses import replace

    from tilewright.compiler.arith import poly
    from tilewright.compiler.ir import Block, Stmt

    a = te.placeholder((6,), "float32", name="A")
    b = te.compute((12,), lambda i: a[i // 2] * 2, name="B")
    func = te.create_prim_func([a, b], name="f")

    def halve(s: Stmt) -> Stmt:
        if type(s) is not Block:
            return s
        return replace(s, indices=(11 - poly(s.iters[0]),))

    func = func.rewrite(halve)
    sch = Schedule(func)
    sch.reindex(sch.get_block("B"), "write", 0)
    x, out = np.arange(6, dtype="float32"), np.empty(12, "float32")
    interpret.run(sch.func, [x, out])
    np.testing.assert_array_equal(out, np.repeat(x * 2, 2)[::-1])


def test_two_places_of_one_buffer_are_not_one_copy() -> None:
    a = te.placeholder((6,), "float32", name="A")
    b = te.compute((5,), lambda i: a[i] + a[i + 1], name="B")
    sch = Schedule(te.create_prim_func([a, b], name="f"))
    block = sch.get_block("B")
    assert reason_of(lambda: sch.reindex(block, "read", 0)) == ("reindex: 'B' reads A at more than one place")
    assert reason_of(lambda: sch.reindex(block, "read", 1)) == (
        "reindex: 'B' has no read buffer 1; it reads 0: A"
    )
    assert reason_of(lambda: sch.reindex(block, "write", 1)) == (
        "reindex: 'B' has one write buffer, 0; there is no 1"
    )
    assert reason_of(lambda: sch.reindex(block, "both", 0)) == (  # type: ignore[arg-type]
        "reindex: access is 'read' or 'write', got 'both'"
    )


def test_a_producer_in_the_nest_is_not_reindexed(chain: PrimFunc) -> None:
    sch = Schedule(chain)
    b, c = sch.get_block("B"), sch.get_block("C")
    sch.compute_at(b, sch.get_loops(c)[0])
    assert reason_of(lambda: sch.reindex(c, "read", 0)) == (
        "reindex: B is written in the same loop nest; reindex it before its producer is moved there"
    )
    assert reason_of(lambda: sch.reindex(b, "write", 0)) == (
        "reindex: 'C' reads B in the same loop nest; reindex it before that move"
    )


@pytest.mark.parametrize(
    ("padding", "reason"),
    [
        ([4, 4], "padding is a list with one multiple for each of 3 variables, got [4, 4]"),
        ([4, 4, 0], "a multiple is an integer from 1 to 4096, got 0"),
        ([4, 4, True], "a multiple is an integer from 1 to 4096, got True"),
    ],
)
def test_a_padding_is_a_multiple_for_each_variable(matmul: PrimFunc, padding: list[int], reason: str) -> None:
    sch = Schedule(matmul)
    block = sch.get_block("C")
    assert reason_of(lambda: sch.pad_einsum(block, padding)) == f"pad_einsum: {reason}"


def test_what_is_no_product_is_not_padded(matmul: PrimFunc) -> None:
    sch = Schedule(matmul)
    block = sch.get_block("D")
    assert reason_of(lambda: sch.pad_einsum(block, [4, 4])) == (
        "pad_einsum: 'D' is no product of loads, or sum of such"
    )


def test_a_maximum_is_not_padded() -> None:
    a = te.placeholder((3, 5), "float32", name="A")
    k = te.reduce_axis((0, 5), name="k")
    m = te.compute((3,), lambda i: te.max(a[i, k], axis=k), name="M")
    sch = Schedule(te.create_prim_func([a, m], name="f"))
    block = sch.get_block("M")
    assert reason_of(lambda: sch.pad_einsum(block, [1, 8])) == (
        "pad_einsum: 'M' is no sum that begins with a constant"
    )


def test_a_factor_outside_of_a_growing_sum_is_refused_where_it_may_be_infinite() -> None:
    a = te.placeholder((3, 5), "float32", name="A")
    b = te.placeholder((3,), "float32", name="B")
    k = te.reduce_axis((0, 5), name="k")
    s = te.compute((3,), lambda i: te.sum(a[i, k] * b[i], axis=k), name="S")
    func = te.create_prim_func([a, b, s], name="f")
    sch = Schedule(func)
    block = sch.get_block("S")
    assert reason_of(lambda: sch.pad_einsum(block, [1, 8])) == (
        "pad_einsum: B is not indexed by 'k'; "
        "where it holds an infinity, its products with padding would be NaN"
    )
    sch.pad_einsum(block, [2, 5])
    equal(func, sch)


def test_a_padded_variable_is_alone_in_its_index() -> None:
    sch = Schedule(topi.create({"op": "conv2d", "ci": 2, "h": 5, "w": 5, "co": 3, "kh": 3, "kw": 3}))
    block = sch.get_block(0)
    padding = [1] * len(sch.get_loops(block))
    padding[2] = 2
    assert reason_of(lambda: sch.pad_einsum(block, padding)) == (
        "pad_einsum: a padded variable is not alone in an index of X"
    )


def test_a_split_block_is_not_padded(matmul: PrimFunc) -> None:
    sch = Schedule(matmul)
    block = sch.get_block("C")
    i, _, _ = sch.get_loops(block)
    sch.split(i, [2, 5])
    assert reason_of(lambda: sch.pad_einsum(block, [4, 4, 4])) == (
        "pad_einsum: 'C' takes 'i' from i_0 * 5 + i_1, which is no loop of its own; "
        "do this before its loops are split, fused or moved"
    )


def test_tiles_of_a_padded_matmul_have_no_tail(keeps_its_meaning: Keeps) -> None:
    a = te.placeholder((10, 7), "float32", name="A")
    b = te.placeholder((7, 6), "float32", name="B")
    k = te.reduce_axis((0, 7), name="k")
    c = te.compute((10, 6), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    keeps_its_meaning(te.create_prim_func([a, b, c], name="matmul"), pad_einsum_and_tile)
