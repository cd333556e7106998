"""A program in another layout means the same, and prints as Python that runs."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.compiler import interpret, te
from tilewright.compiler.arith import poly
from tilewright.compiler.ir import PrimFunc, structural_equal
from tilewright.compiler.passes import lowering
from tilewright.compiler.schedule import Schedule, Trace
from tilewright.compiler.schedule.index_expr import function_of
from tilewright.compiler.schedule.index_map import index_map
from tilewright.compiler.target import Target

Keeps = Callable[[PrimFunc, Callable[[Schedule], object]], None]


def transform_layout_with_a_tail(s: Schedule) -> None:
    s.transform_layout(s.get_block("B"), 0, lambda i, j: (i // 4, j, i % 4))


def transform_layout_that_divides(s: Schedule) -> None:
    s.transform_layout(s.get_block("B"), 0, lambda i, j: (j // 2, i // 5, j % 2, i % 5))


def transform_layout_with_padding_filled(s: Schedule) -> None:
    s.transform_layout(s.get_block("B"), 0, lambda i, j: (i // 4, j, i % 4), pad_value=float("-inf"))


def transform_layout_and_blocks(s: Schedule) -> None:
    b, c = s.get_block("B"), s.get_block("C")
    s.transform_layout(b, 0, lambda i, j: (i // 5, j, i % 5))
    for block in (b, c):
        _, _, inner = s.transform_block_layout(block, lambda i, j: (i // 5, j, i % 5))
        s.vectorize(inner)
    i, _, _ = s.get_loops(c)
    s.compute_at(b, i)


def transform_block_layout_with_a_tail(s: Schedule) -> None:
    s.transform_block_layout(s.get_block("C"), lambda i, j: (i // 4, j, i % 4))


def transform_block_layout_fused(s: Schedule) -> None:
    s.transform_block_layout(s.get_block("C"), lambda i, j: (j * 10 + i,))


def storage_align_rows(s: Schedule) -> None:
    s.storage_align(s.get_block("B"), 0, axis=0, factor=8, offset=1)


def storage_align_under_a_loop(s: Schedule) -> None:
    b = s.get_block("B")
    i, _ = s.get_loops(s.get_block("C"))
    i0, _ = s.split(i, [None, 4])
    s.compute_at(b, i0)
    s.set_scope(b, 0, "local")
    s.storage_align(b, 0, axis=-2, factor=16, offset=3)


CHAIN = [
    transform_layout_with_a_tail,
    transform_layout_that_divides,
    transform_layout_with_padding_filled,
    transform_layout_and_blocks,
    transform_block_layout_with_a_tail,
    transform_block_layout_fused,
    storage_align_rows,
    storage_align_under_a_loop,
]


@pytest.mark.parametrize("steps", CHAIN, ids=lambda s: s.__name__)
def test_an_elementwise_chain_in_another_layout(
    chain: PrimFunc, steps: Callable[[Schedule], object], keeps_its_meaning: Keeps
) -> None:
    keeps_its_meaning(chain, steps)


def transform_block_layout_of_a_reduction(s: Schedule) -> None:
    s.transform_block_layout(s.get_block("C"), lambda i, j, k: (k // 3, i, j, k % 3))


def transform_layout_of_packed_weights(s: Schedule) -> None:
    c = s.get_block("C")
    packed = s.cache_read(c, 1, "global")
    s.transform_layout(packed, 0, lambda k, j: (j // 4, k, j % 4))
    s.transform_block_layout(packed, lambda k, j: (j // 4, k, j % 4))
    _, j, _ = s.get_loops(c)
    _, j1 = s.split(j, [None, 4])
    i, j0, _, k = s.get_loops(c)
    s.reorder(i, j0, k, j1)
    s.vectorize(j1)


@pytest.mark.parametrize(
    "steps",
    [transform_block_layout_of_a_reduction, transform_layout_of_packed_weights],
    ids=lambda s: s.__name__,
)
def test_a_matmul_in_another_layout(
    matmul: PrimFunc, steps: Callable[[Schedule], object], keeps_its_meaning: Keeps
) -> None:
    keeps_its_meaning(matmul, steps)


MAPS: dict[str, Callable[..., object]] = {
    "swap": lambda i, j: (j, i),
    "tail of rows": lambda i, j: (i // 3, j, i % 3),
    "tails of both": lambda i, j: (i // 4, j // 3, i % 4, j % 3),
    "three levels": lambda i, j: (i // 6, (i // 2) % 3, j, i % 2),
    "flat": lambda i, j: (i * 7 + j,),
    "flat and cut": lambda i, j: ((i * 7 + j) // 7, (i * 7 + j) % 7),
    "backwards": lambda i, j: (10 - i, j),
    "skewed": lambda i, j: ((i + j) % 11, j),
    "a dimension of one": lambda i, j: (i, 0, j),
}


@pytest.mark.parametrize("dtype", ["float32", "int8", "float64"])
@pytest.mark.parametrize("name", MAPS)
def test_any_one_to_one_map_keeps_the_values(name: str, dtype: str) -> None:
    a = te.placeholder((11, 7), dtype, name="A")
    b = te.compute((11, 7), lambda i, j: a[i, j] * 2, name="B")
    c = te.compute((7, 11), lambda i, j: b[j, i] + b[(j + 1) % 11, i], name="C")
    func = te.create_prim_func([a, c], name="f")
    sch = Schedule(func)
    sch.transform_layout(sch.get_block("B"), 0, MAPS[name])
    expected = interpret.expected(func, interpret.random_inputs(func, 0))
    for run in (lambda arrays: interpret.run(sch.func, arrays), lambda arrays: tw.build(sch)(*arrays)):
        arrays = interpret.random_inputs(func, 0)
        run(arrays)
        result = interpret.check(expected, arrays)
        assert result.ok, result.message


def test_what_pads_a_layout_is_the_value_that_was_asked_for() -> None:
    a = te.placeholder((5,), "int32", name="A")
    b = te.compute((5,), lambda i: a[i] * 2, name="B")
    c = te.compute((5,), lambda i: b[i] + 1, name="C")
    sch = Schedule(te.create_prim_func([a, c], name="f"))
    sch.transform_layout(sch.get_block("B"), 0, lambda i: (i // 4, i % 4), pad_value=-7)
    padded = PrimFunc("g", (sch.func.params[0], *sch.func.allocs), (), sch.func.body[:2])
    x, out = np.arange(5, dtype="int32"), np.zeros((2, 4), "int32")
    interpret.run(padded, [x, out])
    np.testing.assert_array_equal(out, [[0, 2, 4, 6], [8, -7, -7, -7]])


def test_lowering_pads_the_rows_to_the_pitch(chain: PrimFunc) -> None:
    sch = Schedule(chain)
    sch.storage_align(sch.get_block("B"), 0, axis=0, factor=8, offset=1)
    lowered = lowering(Target.parse("llvm")).run(sch.func)
    assert str(lowered) == (
        "def chain(A: float32[10, 6], C: float32[10, 6]):\n"
        "    B = alloc(float32[10, 9])\n"
        "    for i in range(10):\n"
        "        for j in range(6):\n"
        "            B[i, j] = A[i, j] * 2.0\n"
        "    for i in range(10):\n"
        "        for j in range(6):\n"
        "            C[i, j] = B[i, j] + 1.0\n"
    )


def test_alignments_of_two_axes_are_taken_from_the_inside() -> None:
    a = te.placeholder((2, 3, 5), "float32", name="A")
    b = te.compute((2, 3, 5), lambda i, j, k: a[i, j, k] * 2, name="B")
    c = te.compute((2, 3, 5), lambda i, j, k: b[i, j, k] + 1, name="C")
    sch = Schedule(te.create_prim_func([a, c], name="f"))
    block = sch.get_block("B")
    sch.storage_align(block, 0, axis=1, factor=4, offset=3)
    sch.storage_align(block, 0, axis=0, factor=16, offset=0)
    lowered = lowering(Target.parse("llvm")).run(sch.func)
    assert str(lowered) == (
        "def f(A: float32[2, 3, 5], C: float32[2, 3, 5]):\n"
        "    B = alloc(float32[2, 32])\n"
        "    for i in range(2):\n"
        "        for j in range(3):\n"
        "            for k in range(5):\n"
        "                B[i, j * 7 + k] = A[i, j, k] * 2.0\n"
        "    for i in range(2):\n"
        "        for j in range(3):\n"
        "            for k in range(5):\n"
        "                C[i, j, k] = B[i, j * 7 + k] + 1.0\n"
    )


@pytest.mark.parametrize("n", [0, 1, 2, 5, 9, 16])
def test_rows_whose_length_is_known_at_the_call_get_their_pitch_there(n: int) -> None:
    size = te.var("n")
    a = te.placeholder((3, size), "int32", name="A")
    b = te.compute((3, size), lambda i, j: a[i, j] * 2, name="B")
    c = te.compute((3, size), lambda i, j: b[i, j] + 1, name="C")
    sch = Schedule(te.create_prim_func([a, c], name="f"))
    sch.storage_align(sch.get_block("B"), 0, axis=0, factor=8, offset=3)
    kernel = tw.build(sch)
    x = np.arange(3 * n, dtype="int32").reshape(3, n)
    out = np.empty((3, n), "int32")
    kernel(x, out)
    np.testing.assert_array_equal(out, x * 2 + 1)
    (workspace,) = kernel.workspaces
    from tilewright.compiler.runtime.dims import evaluate

    pitch = max(3, -(-(n - 3) // 8) * 8 + 3)
    assert evaluate(workspace.bytes, {"n": n}) == 3 * pitch * 4


def test_rfactor_of_a_loop_over_a_size_adds_nothing_to_an_empty_sum() -> None:
    size = te.var("n")
    a = te.placeholder((size,), "float32", name="A")
    k = te.reduce_axis((0, size), name="k")
    sch = Schedule(te.create_prim_func([a, te.compute((), lambda: te.sum(a[k], axis=k), name="S")], name="f"))
    (loop,) = sch.get_loops(sch.get_block("S"))
    _, inner = sch.split(loop, [None, 8])
    sch.rfactor(inner)
    sch.vectorize(inner)
    kernel = tw.build(sch)
    for n in (0, 1, 7, 8, 21):
        x, out = np.ones(n, "float32"), np.empty((), "float32")
        kernel(x, out)
        assert out == n


def test_loose_bounds_do_not_make_an_intermediate_larger(chain: PrimFunc) -> None:
    sch = Schedule(chain)
    b, c = sch.get_block("B"), sch.get_block("C")
    sch.transform_layout(b, 0, lambda i, j: (i // 4 * 24 + j * 4 + i % 4,))
    for block in (b, c):
        sch.transform_block_layout(block, lambda i, j: (j * 10 + i,))
    lowered = lowering(Target.parse("llvm")).run(sch.func)
    assert [p.const for p in lowered.allocs[0].shape] == [72]


def integers() -> PrimFunc:
    a = te.placeholder((10, 6), "int64", name="A")
    b = te.compute((10, 6), lambda i, j: a[i, j] + 1, name="B")
    return te.create_prim_func([a, te.compute((10, 6), lambda i, j: b[i, j] * 2, name="C")], name="integers")


@pytest.mark.parametrize(
    ("value", "held"),
    [
        (-(2**63), "-9223372036854775808"),
        (2**53, "9007199254740992"),
        (np.int64(7), 7),
        ("-9223372036854775808", "-9223372036854775808"),
    ],
)
def test_any_integer_that_fills_padding_comes_back_from_json_and_from_python(value: Any, held: Any) -> None:
    sch = Schedule(integers())
    sch.transform_layout(sch.get_block("B"), 0, lambda i, j: (i // 4, j, i % 4), pad_value=value)
    assert sch.trace.instructions[-1].args["pad_value"] == held
    again = Trace.from_json(json.loads(json.dumps(sch.trace.to_json()))).apply(sch.original)
    assert structural_equal(again.func, sch.func)
    assert again.trace.canonical_json() == sch.trace.canonical_json()
    written = Schedule(sch.original)
    exec(sch.trace.script(), {"sch": written})
    assert structural_equal(written.func, sch.func)


def test_a_reversed_layout_prints_as_python_that_runs(chain: PrimFunc) -> None:
    sch = Schedule(chain)
    sch.transform_layout(sch.get_block("B"), 0, lambda i, j: (9 - i, j))
    written = Schedule(chain)
    exec(sch.trace.script(), {"sch": written})
    assert structural_equal(written.func, sch.func)


def test_a_map_from_a_trace_has_its_terms_in_the_order_of_the_function() -> None:
    extents = [poly(10), poly(6)]
    written = index_map(lambda i, j: (i % 3, j, i // 3), extents)
    read = index_map(function_of(written.plain()), extents)
    orders = [[tuple(o.terms.values()) for o in m.outputs] for m in (written, read)]
    assert orders[0] == orders[1]
