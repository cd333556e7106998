"""rfactor: whole reductions and rows in parts, with tails, for each reducer; what it refuses."""

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tilewright.compiler import interpret, te
from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.schedule import Schedule, ScheduleError

from .refusing import reason_of

Keeps = Callable[[PrimFunc, Callable[[Schedule], object]], None]


def total(n: int, dtype: str = "float32", reducer: str = "sum") -> PrimFunc:
    """S = the sum (or another reduction) of n elements."""
    a = te.placeholder((n,), dtype, name="A")
    k = te.reduce_axis((0, n), name="k")
    s = te.compute((), lambda: getattr(te, reducer)(a[k], axis=k), name="S")
    return te.create_prim_func([a, s], name="total")


def rows() -> PrimFunc:
    """The sums of 5 rows of 23 elements, and a use of them."""
    a = te.placeholder((5, 23), "float32", name="A")
    k = te.reduce_axis((0, 23), name="k")
    s = te.compute((5,), lambda i: te.sum(a[i, k], axis=k), name="S")
    d = te.compute((5,), lambda i: s[i] * 2, name="D")
    return te.create_prim_func([a, d], name="rows")


def rfactor_a_whole_loop(s: Schedule) -> None:
    _, k = s.get_loops(s.get_block("S"))
    s.rfactor(k)


def rfactor_a_tail_into_vectors(s: Schedule) -> None:
    _, k = s.get_loops(s.get_block("S"))
    _, k1 = s.split(k, [None, 8])
    rf = s.rfactor(k1, axis=1)
    s.vectorize(k1)
    s.set_scope(rf, 0, "local")


def rfactor_the_outer_part(s: Schedule) -> None:
    _, k = s.get_loops(s.get_block("S"))
    k0, _ = s.split(k, [4, None])
    s.rfactor(k0)


def rfactor_outside_of_the_rows(s: Schedule) -> None:
    i, k = s.get_loops(s.get_block("S"))
    k0, k1 = s.split(k, [None, 8])
    s.reorder(k0, i, k1)
    s.rfactor(k0)


@pytest.mark.parametrize(
    "steps",
    [rfactor_a_whole_loop, rfactor_a_tail_into_vectors, rfactor_the_outer_part, rfactor_outside_of_the_rows],
    ids=lambda s: s.__name__,
)
def test_rows_in_parts_keep_their_sums(steps: Callable[[Schedule], object], keeps_its_meaning: Keeps) -> None:
    keeps_its_meaning(rows(), steps)


@pytest.mark.parametrize("reducer", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("n", [1, 7, 32, 37])
def test_each_reducer_in_vector_parts_equals_the_reference(reducer: str, dtype: str, n: int) -> None:
    func = total(n, dtype, reducer)
    sch = Schedule(func)
    (k,) = sch.get_loops(sch.get_block("S"))
    _, k1 = sch.split(k, [None, 8])
    sch.rfactor(k1)
    sch.vectorize(k1)
    expected = interpret.expected(func, interpret.random_inputs(func, 3))
    arrays = interpret.random_inputs(func, 3)
    tw.build(sch)(*arrays)
    result = interpret.check(expected, arrays)
    assert result.ok, result.message


@pytest.mark.parametrize(
    ("reducer", "dtype"),
    [
        ("all", "bool"),
        ("any", "bool"),
        ("reduce_and", "int32"),
        ("reduce_or", "uint8"),
        ("reduce_xor", "int64"),
        ("argmin", "float32"),
        ("argmax", "int8"),
    ],
)
def test_reductions_of_bits_and_positions_in_parts_equal_the_reference(reducer: str, dtype: str) -> None:
    a = te.placeholder((3, 21), dtype, name="A")
    k = te.reduce_axis((0, 21), name="k")
    made = te.compute((3,), lambda i: getattr(te, reducer)(a[i, k], axis=k), name="S")
    func = te.create_prim_func([a, made], name="f")
    sch = Schedule(func)
    for block in sch.get_blocks():
        loops = sch.get_loops(block)
        if len(loops) == 2:
            _, inner = sch.split(loops[1], [None, 8])
            sch.rfactor(inner)
            sch.vectorize(inner)
    assert "_rf" in str(sch)
    expected = interpret.expected(func, interpret.random_inputs(func, 3))
    arrays = interpret.random_inputs(func, 3)
    tw.build(sch)(*arrays)
    result = interpret.check(expected, arrays)
    assert result.ok, result.message


def test_a_sum_of_1000_floats_becomes_one_vector_accumulator() -> None:
    sch = Schedule(total(1000))
    block = sch.get_block("S")
    (k,) = sch.get_loops(block)
    _, k1 = sch.split(k, [None, 8])
    rf = sch.rfactor(k1)
    sch.set_scope(rf, 0, "register")
    sch.vectorize(k1)
    (part,) = sch.get_loops(block)
    sch.unroll(part)
    kernel = tw.build(sch, target="llvm -mcpu=x86-64-v3")
    a = np.random.default_rng(0).standard_normal(1000).astype("float32")
    out = np.empty((), "float32")
    kernel(a, out)
    np.testing.assert_allclose(out, a.astype("float64").sum(), rtol=1e-5)
    ir = str(kernel.source())
    assert "phi <8 x float>" in ir
    assert "alloca" not in ir
    assert ir.count("fadd contract <8 x float>") == 1


def test_a_spatial_loop_is_not_factored() -> None:
    sch = Schedule(rows())
    i, _ = sch.get_loops(sch.get_block("S"))
    assert reason_of(lambda: sch.rfactor(i)) == "rfactor: loop 'i' carries no reduction"


@pytest.mark.parametrize("axis", [2, -3, True, "0"])
def test_the_axis_is_one_of_the_new_buffer(axis: object) -> None:
    sch = Schedule(rows())
    _, k = sch.get_loops(sch.get_block("S"))
    assert reason_of(lambda: sch.rfactor(k, axis)) == (  # type: ignore[arg-type]
        f"rfactor: S has 1 dimensions, so that axis is from -2 to 1, got {axis!r}"
    )


def test_a_decomposed_reduction_is_not_factored() -> None:
    sch = Schedule(rows())
    block = sch.get_block("S")
    _, k = sch.get_loops(block)
    sch.decompose_reduction(block, k)
    assert (
        reason_of(lambda: sch.rfactor(k)) == "rfactor: the init of 'S' was decomposed; factor it before that"
    )


def test_a_refusal_marks_the_block_and_names_the_line() -> None:
    sch = Schedule(rows())
    block = sch.get_block("S")
    _, k = sch.get_loops(block)
    sch.decompose_reduction(block, k)
    with pytest.raises(ScheduleError) as caught:
        sch.rfactor(k)
    line = caught.value.span.line if caught.value.span else 0
    assert str(caught.value) == (
        "rfactor: the init of 'S' was decomposed; factor it before that\n"
        f"  at test_rfactor.py:{line}\n"
        "  def rows(A: float32[5, 23], D: float32[5]):\n"
        "      S = alloc(float32[5])\n"
        "      for i in range(5):\n"
        "          with block('S_init'):\n"
        "              S[i] = 0.0\n"
        "          for k in range(23):\n"
        "              S[i] += A[i, k]\n"
        "              ^^^^^^^^^^^^^^^ this block\n"
        "      for i in range(5):\n"
        "          D[i] = S[i] * 2.0"
    )


def test_a_reduction_that_is_repeated_for_its_consumer_is_factored_in_its_place() -> None:
    a = te.placeholder((4, 8), "float32", name="A")
    k = te.reduce_axis((0, 8), name="k")
    s = te.compute((4,), lambda i: te.sum(a[i, k], axis=k), name="S")
    out = te.compute((4, 6), lambda i, j: s[i] + 1, name="out")
    func = te.create_prim_func([a, out], name="rows")
    sch = Schedule(func)
    _, j = sch.get_loops(sch.get_block("out"))
    _, k = sch.compute_at(sch.get_block("S"), j)
    sch.rfactor(k)
    equal_to_numpy(sch, lambda a: np.broadcast_to(a.sum(axis=1, keepdims=True) + 1, (4, 6)))


def test_a_consumer_in_the_nest_stays_behind_the_combined_sum() -> None:
    sch = Schedule(rows())
    i, k = sch.get_loops(sch.get_block("S"))
    sch.reverse_compute_at(sch.get_block("D"), i)
    sch.rfactor(k)
    equal_to_numpy(sch, lambda a: a.sum(axis=1) * 2)


def equal_to_numpy(sch: Schedule, reference: Callable[[np.ndarray], np.ndarray]) -> None:
    a, out = interpret.random_inputs(sch.func, 0)
    interpreted = out.copy()
    interpret.run(sch.func, [a, interpreted])
    tw.build(sch)(a, out)
    for got in (interpreted, out):
        np.testing.assert_allclose(got, reference(a), rtol=1e-5, atol=1e-5)
