"""Tiles of registers that are written in one direction and read in the other, and lanes that lie apart."""

import re
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import pytest

from tilewright.compiler import te
from tilewright.compiler.codegen.llvm.builder import Builder
from tilewright.compiler.codegen.llvm.transpose import column
from tilewright.compiler.codegen.lower import lower
from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.runtime import Function
from tilewright.compiler.schedule import Schedule
from tilewright.compiler.target import Target

Array = np.ndarray[Any, Any]
Build = Callable[..., Function]


class Guarded(Protocol):
    def array(self, values: Array, *, at_start: bool = False) -> Array: ...


SHUFFLE = re.compile(r"  (%\w+) = shufflevector <\d+ x \w+> (\S+), <\d+ x \w+> (\S+), <\d+ x i32> <(.*)>")


def shuffled(lines: list[str], rows: dict[str, list[object]], lanes: int) -> dict[str, list[object]]:
    """Every value of a text of shuffles."""
    values = dict(rows)
    for line in lines:
        found = SHUFFLE.fullmatch(line)
        assert found is not None, line
        name, a, b, mask = found.groups()
        left = values.get(a, [0] * lanes)
        both = [*left, *values.get(b, [0] * len(left))]
        values[name] = [both[int(x.split()[1])] for x in mask.split(", ")]
    return values


@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
def test_a_column_holds_one_lane_of_each_row(lanes: int) -> None:
    for count in (1, 2, 3, 4, 7, 8, 13, 16, 20):
        builder = Builder()
        rows = [f"%r{n}" for n in range(count)]
        columns = [column(builder, rows, lanes, lane, "float") for lane in range(lanes)]
        held: dict[str, list[object]] = {r: [(n, lane) for lane in range(lanes)] for n, r in enumerate(rows)}
        values = shuffled(builder.scope.lines, held, lanes)
        for lane, name in enumerate(columns):
            assert values[name][:count] == [(n, lane) for n in range(count)], (count, lane)
            assert not any(values[name][count:])


def test_a_square_takes_a_shuffle_for_each_row_and_stage() -> None:
    builder = Builder()
    for lane in range(16):
        column(builder, [f"%r{n}" for n in range(16)], 16, lane, "float")
    assert builder.count == 16 * 4


def transposition(rows: int, columns: int, dtype: str) -> PrimFunc:
    """B[j, i] = A[i, j] through a tile of registers: read along j, written along i."""
    a = te.placeholder((rows, columns), dtype, name="A")
    b = te.compute((columns, rows), lambda j, i: a[i, j], name="B")
    sch = Schedule(te.create_prim_func([a, b]))
    block = sch.get_block("B")
    j, i = sch.get_loops(block)
    sch.vectorize(i)
    sch.unroll(j)
    outer = sch.add_unit_loop(j)
    tile = sch.cache_read(block, 0, "register")
    first, second = sch.compute_at(tile, outer)
    sch.unroll(first)
    sch.vectorize(second)
    return sch.func


@pytest.mark.parametrize("dtype", ["float32", "int32", "float64", "float16", "int8"])
def test_a_tile_written_across_its_vectors_is_transposed(built: Build, dtype: str) -> None:
    for rows, columns in ((4, 4), (8, 8), (16, 16), (7, 16), (14, 16), (5, 8), (16, 5), (13, 11), (3, 16)):
        a = np.arange(rows * columns).reshape(rows, columns).astype(dtype)
        out = np.full((columns, rows), 99, dtype)
        built(transposition(rows, columns, dtype))(a, out)
        np.testing.assert_array_equal(out, a.T, err_msg=f"{rows} x {columns}")


def test_a_tile_is_transposed_by_shuffles_alone() -> None:
    text = lower(transposition(16, 16, "float32"), Target.parse("llvm -mcpu=x86-64-v4")).text
    assert text.count("shufflevector") == 64
    assert "extractelement" not in text and "insertelement" not in text


def every(stride: int, first: int, count: int, dtype: str) -> PrimFunc:
    size = first + stride * (count - 1) + 1
    a = te.placeholder((size,), dtype, name="A")
    b = te.compute((count,), lambda i: a[i * stride + first], name="B")
    sch = Schedule(te.create_prim_func([a, b]))
    (i,) = sch.get_loops(sch.get_block("B"))
    _, lanes = sch.split(i, [None, min(count, 16)])
    sch.vectorize(lanes)
    return sch.func


@pytest.mark.parametrize("at_start", [False, True], ids=["before a page", "behind a page"])
@pytest.mark.parametrize("dtype", ["float32", "int8", "float64", "float16"])
def test_lanes_that_lie_apart_read_nothing_beyond_them(
    built: Build, guarded: Guarded, dtype: str, at_start: bool
) -> None:
    for stride in (2, 3, 4, 5):
        for first, count in ((0, 16), (1, 32), (0, 4), (2, 8), (0, 2)):
            a = np.arange(first + stride * (count - 1) + 1).astype(dtype)
            out = guarded.array(np.zeros(count, dtype), at_start=at_start)
            built(every(stride, first, count, dtype))(guarded.array(a, at_start=at_start), out)
            np.testing.assert_array_equal(out, a[first::stride])


def test_lanes_a_few_elements_apart_are_no_gather() -> None:
    target = Target.parse("llvm -mcpu=x86-64-v4")
    for stride, gathers in ((2, False), (3, False), (4, False), (5, True)):
        assert ("masked.gather" in lower(every(stride, 0, 64, "float32"), target).text) is gathers
