"""Reads and writes against NumPy, on arrays with unreadable pages on both sides."""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import pytest

from tilewright.compiler import te
from tilewright.compiler.codegen.lower import lower
from tilewright.compiler.ir import DType, PrimFunc
from tilewright.compiler.runtime import Function
from tilewright.compiler.schedule import Schedule
from tilewright.compiler.target import Target

Array = np.ndarray[Any, Any]
Build = Callable[..., Function]


class Guarded(Protocol):
    def array(self, values: Array, *, at_start: bool = False) -> Array: ...


at_both_ends = pytest.mark.parametrize("at_start", [False, True], ids=["before a page", "behind a page"])


def vectorized(func: PrimFunc, block: str = "out", loop: int = -1) -> PrimFunc:
    """One loop around the block as a vector loop."""
    sch = Schedule(func)
    sch.vectorize(sch.get_loops(sch.get_block(block))[loop])
    return sch.func


def poisoned(shape: tuple[int, ...], dtype: str) -> Array:
    out = np.empty(shape, dtype)
    out.view(np.uint8)[...] = 0xAB
    return out


@at_both_ends
@pytest.mark.parametrize("dtype", ["int8", "float32", "float64", "bool"])
def test_a_vector_loop_of_any_extent_touches_only_its_array(
    built: Build, guarded: Guarded, dtype: str, at_start: bool
) -> None:
    for n in (*range(1, 20), 31, 33, 63, 64, 65, 100, 129):
        a = te.placeholder((n,), dtype, name="A")
        func = te.create_prim_func([a, te.compute((n,), lambda i, a=a: a[i], name="out")])
        x = guarded.array(
            (np.arange(n) % 2 if dtype == "bool" else np.arange(n)).astype(dtype), at_start=at_start
        )
        out = guarded.array(poisoned((n,), dtype), at_start=at_start)
        built(vectorized(func))(x, out)
        np.testing.assert_array_equal(out, x)


@at_both_ends
@pytest.mark.parametrize(
    ("source", "dtype"),
    [
        ("int32", "int8"),
        ("int32", "uint16"),
        ("int64", "int32"),
        ("float64", "int8"),
        ("float32", "bfloat16"),
        ("float32", "float16"),
        ("float64", "float32"),
    ],
)
def test_a_conversion_to_fewer_bytes_writes_only_its_lanes(
    built: Build, guarded: Guarded, source: str, dtype: str, at_start: bool
) -> None:
    """One lane left over after truncation: LLVM 22 stores it as wide as it was before."""
    kind = DType.parse(dtype).numpy
    for n in (*range(1, 20), 33, 65):
        a = te.placeholder((n,), source, name="A")
        func = te.create_prim_func([a, te.compute((n,), lambda i, a=a: te.cast(a[i], dtype), name="out")])
        x = guarded.array(np.arange(n).astype(source), at_start=at_start)
        around = np.full(n + 16, 77).astype(kind)
        out = guarded.array(np.zeros(n, kind), at_start=at_start)
        module = built(vectorized(func))
        module(x, out)
        module(x, around[8:-8])
        np.testing.assert_array_equal(out, x.astype(kind))
        np.testing.assert_array_equal(around[:8], around[-8:])


@at_both_ends
@pytest.mark.parametrize("n", [1, 5, 16, 37])
def test_guarded_reads_do_not_leave_the_array(built: Build, guarded: Guarded, n: int, at_start: bool) -> None:
    a = te.placeholder((n,), "float32", name="A")
    out = te.compute(
        (n + 4,),
        lambda i: te.if_then_else(te.all(i >= 2, i < n + 2), a[i - 2], 7.0),
        name="out",
    )
    func = te.create_prim_func([a, out])
    x = guarded.array(np.arange(n, dtype="f4"), at_start=at_start)
    for scheduled in (func, vectorized(func)):
        y = guarded.array(poisoned((n + 4,), "float32"), at_start=at_start)
        built(scheduled)(x, y)
        np.testing.assert_array_equal(y, np.pad(x, 2, constant_values=7.0))


@at_both_ends
@pytest.mark.parametrize("lane", [0, 1])
def test_padding_around_rows_and_columns_reads_only_what_is_there(
    built: Build, guarded: Guarded, lane: int, at_start: bool
) -> None:
    a = te.placeholder((5, 19), "float32", name="A")

    def padded(i: te.Index, j: te.Index) -> te.Value:
        return te.if_then_else(te.all(i >= 1, i < 6, j >= 1, j < 20), a[i - 1, j - 1] * 2.0, 0.0)

    func = te.create_prim_func([a, te.compute((7, 21), padded, name="out")])
    x = guarded.array(np.arange(95, dtype="f4").reshape(5, 19), at_start=at_start)
    y = guarded.array(poisoned((7, 21), "float32"), at_start=at_start)
    built(vectorized(func, loop=lane))(x, y)
    np.testing.assert_array_equal(y, np.pad(x * 2, 1))


@at_both_ends
@pytest.mark.parametrize("dtype", ["int8", "float32", "float64"])
@pytest.mark.parametrize(("stride", "columns"), [(2, 29), (2, 64), (3, 31), (4, 53)])
def test_padding_around_a_strided_row_reads_only_what_is_there(
    built: Build, guarded: Guarded, stride: int, columns: int, dtype: str, at_start: bool
) -> None:
    a = te.placeholder((3, columns), dtype, name="A")
    count = (columns + 5) // stride + 1

    def window(i: te.Index, j: te.Index, k: te.Index) -> te.Value:
        at = j * stride + k
        inside = te.all(i >= 1, i < 4, at >= 3, at < columns + 3)
        return te.if_then_else(inside, a[i - 1, at - 3], te.const(0, dtype))

    func = te.create_prim_func([a, te.compute((5, count, 4), window, name="out")])
    x = guarded.array(np.arange(1, 3 * columns + 1).reshape(3, columns).astype(dtype), at_start=at_start)
    padded = np.pad(x, ((1, 1), (3, 3 + 4 * stride)))
    expected = np.stack([padded[:, k : k + count * stride : stride] for k in range(4)], axis=-1)
    for tiles in (None, 1):
        sch = Schedule(func)
        _, columns_, taps = sch.get_loops(sch.get_block("out"))
        # With one tile the masks are known, with several they depend on the tile.
        _, lane = sch.split(columns_, [tiles, 8] if tiles is None else [tiles, count])
        sch.reorder(taps, lane)
        sch.unroll(taps)
        sch.vectorize(lane)
        y = guarded.array(poisoned((5, count, 4), dtype), at_start=at_start)
        built(sch.func)(x, y)
        np.testing.assert_array_equal(y, expected)


@at_both_ends
def test_a_condition_on_lanes_around_a_broadcast_read_keeps_its_address_inside(
    built: Build, guarded: Guarded, at_start: bool
) -> None:
    a = te.placeholder((3,), "float32", name="A")
    out = te.compute(
        (5, 21), lambda i, j: te.if_then_else(te.all(i >= 1, i < 4, j < 9), a[i - 1], -1.0), name="out"
    )
    x = guarded.array(np.array([1, 2, 3], "f4"), at_start=at_start)
    y = guarded.array(poisoned((5, 21), "float32"), at_start=at_start)
    built(vectorized(te.create_prim_func([a, out])))(x, y)
    expected = np.full((5, 21), -1, "f4")
    expected[1:4, :9] = x[:, None]
    np.testing.assert_array_equal(y, expected)


@at_both_ends
@pytest.mark.parametrize("dtype", ["int8", "float32", "float64", "bool"])
def test_strided_reads_become_gathers(built: Build, guarded: Guarded, dtype: str, at_start: bool) -> None:
    a = te.placeholder((7, 23), dtype, name="A")
    func = te.create_prim_func([a, te.compute((23, 7), lambda j, i: a[i, j], name="out")])
    values = np.arange(161).reshape(7, 23)
    x = guarded.array((values % 3 == 0 if dtype == "bool" else values).astype(dtype), at_start=at_start)
    y = guarded.array(poisoned((23, 7), dtype), at_start=at_start)
    built(vectorized(func))(x, y)
    np.testing.assert_array_equal(y, x.T)


@at_both_ends
@pytest.mark.parametrize("dtype", ["int8", "float32", "float64", "bool"])
def test_strided_writes_become_scatters(built: Build, guarded: Guarded, dtype: str, at_start: bool) -> None:
    a = te.placeholder((7, 23), dtype, name="A")
    func = te.create_prim_func([a, te.compute((23, 7), lambda j, i: a[i, j], name="out")])
    values = np.arange(161).reshape(7, 23)
    x = guarded.array((values % 3 == 0 if dtype == "bool" else values).astype(dtype), at_start=at_start)
    y = guarded.array(poisoned((23, 7), dtype), at_start=at_start)
    built(vectorized(func, loop=0))(x, y)
    np.testing.assert_array_equal(y, x.T)


@pytest.mark.parametrize("n", [8, 64, 100])
def test_a_condition_on_an_index_may_be_the_value(built: Build, n: int) -> None:
    a = te.placeholder((n,), "bool", name="A")
    func = te.create_prim_func([a, te.compute((n,), lambda i: te.all(i >= 3, i < n - 2) & a[i], name="out")])
    x = np.arange(n) % 5 != 0
    for scheduled in (func, vectorized(func)):
        y = poisoned((n,), "bool")
        built(scheduled)(x, y)
        np.testing.assert_array_equal(y, x & (np.arange(n) >= 3) & (np.arange(n) < n - 2))


@pytest.mark.parametrize("columns", [3, 6, 16, 32, 35])
def test_lanes_of_a_fused_loop_may_cross_a_row(built: Build, guarded: Guarded, columns: int) -> None:
    a = te.placeholder((9, columns), "float32", name="A")
    b = te.placeholder((9,), "float32", name="B")
    out = te.compute((9, columns), lambda i, j: a[i, j] + b[i], name="out")
    sch = Schedule(te.create_prim_func([a, b, out]))
    _, inner = sch.split(sch.fuse(*sch.get_loops(sch.get_block("out"))), [None, 16])
    sch.vectorize(inner)
    x = guarded.array(np.arange(9 * columns, dtype="f4").reshape(9, columns))
    z = guarded.array(np.arange(9, dtype="f4") * 1000)
    y = guarded.array(poisoned((9, columns), "float32"))
    built(sch.func)(x, z, y)
    np.testing.assert_array_equal(y, x + z[:, None])


def test_lanes_that_stay_in_a_row_are_one_vector_access(host: Target) -> None:
    a = te.placeholder((9, 32), "float32", name="A")
    sch = Schedule(te.create_prim_func([a, te.compute((9, 32), lambda i, j: a[i, j], name="out")]))
    _, inner = sch.split(sch.fuse(*sch.get_loops(sch.get_block("out"))), [None, 4])
    sch.vectorize(inner)
    text = lower(sch.func, host).text
    assert ("gather" in text, "load <4 x float>" in text) == (False, True)


@at_both_ends
@pytest.mark.parametrize("n", [16, 17, 31, 100])
def test_overlapped_tiles_write_each_element_and_no_other(
    built: Build, guarded: Guarded, n: int, at_start: bool
) -> None:
    a = te.placeholder((n,), "float32", name="A")
    sch = Schedule(te.create_prim_func([a, te.compute((n,), lambda i: a[i] + 1.0, name="out")]))
    (i,) = sch.get_loops(sch.get_block("out"))
    _, inner = sch.split(i, [None, 16], overlap=1)
    sch.vectorize(inner)
    x = guarded.array(np.arange(n, dtype="f4"), at_start=at_start)
    y = guarded.array(poisoned((n,), "float32"), at_start=at_start)
    built(sch.func)(x, y)
    np.testing.assert_array_equal(y, x + 1)


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64"])
def test_elements_of_different_widths_meet_in_one_vector_loop(
    built: Build, guarded: Guarded, target: str
) -> None:
    n = 77
    a, b = te.placeholder((n,), "int8", name="A"), te.placeholder((n,), "float64", name="B")
    c = te.placeholder((n,), "bool", name="C")
    out = te.compute(
        (n,),
        lambda i: te.cast(te.if_then_else(c[i], te.cast(a[i], "float64"), b[i]), "int16"),
        name="out",
    )
    func = vectorized(te.create_prim_func([a, b, c, out]))
    x = guarded.array((np.arange(n) - 38).astype("int8"))
    z = guarded.array(np.arange(n) * 100.5)
    bits = guarded.array(np.arange(n) % 3 == 0)
    y = guarded.array(poisoned((n,), "int16"))
    built(func, Target.parse(target))(x, z, bits, y)
    np.testing.assert_array_equal(y, np.where(bits, x, z).astype("int16"))


def test_a_small_local_buffer_stands_on_the_stack_and_a_large_one_is_a_workspace(host: Target) -> None:
    def sizes(n: int) -> list[int]:
        a = te.placeholder((n,), "float32", name="A")
        b = te.compute((n,), lambda i: a[i] + 1.0, name="B")
        sch = Schedule(te.create_prim_func([a, te.compute((n,), lambda i: b[i] * 2.0, name="out")]))
        sch.set_scope(sch.get_block("B"), 0, "local")
        return [w.bytes for w in lower(sch.func, host).workspaces]

    assert (sizes(4096), sizes(4097)) == ([], [16388])


def test_an_intermediate_in_global_memory_is_a_workspace_as_large_as_its_use(host: Target) -> None:
    a = te.placeholder((64, 1000), "float32", name="A")
    b = te.compute((64, 1000), lambda i, j: a[i, j] + 1.0, name="B")
    sch = Schedule(te.create_prim_func([a, te.compute((64, 1000), lambda i, j: b[i, j] * 2.0, name="out")]))
    i, _ = sch.get_loops(sch.get_block("out"))
    sch.compute_at(sch.get_block("B"), i)
    assert [w.bytes for w in lower(sch.func, host).workspaces] == [4000]
