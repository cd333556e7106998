"""Transposes and changes of layout by blocks, against NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.compiler import interpret, te
from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.space.default import default_schedule
from tilewright.compiler.space.moves import runs, stride_of, turned_reads
from tilewright.compiler.space.space import space_of
from tilewright.compiler.target import Target

TARGET = Target.parse("llvm")


def permutation(shape: Sequence[int], axes: Sequence[int], dtype: str = "float32") -> PrimFunc:
    x = te.placeholder(tuple(shape), dtype, name="X")
    out = tuple(shape[a] for a in axes)
    y = te.compute(out, lambda *i: x[tuple(i[axes.index(d)] for d in range(len(shape)))], name="Y")
    return te.create_prim_func([x, y], name="permute")


def to_blocks(c: int, h: int, w: int, by: int) -> PrimFunc:
    x = te.placeholder((c, h, w), "float32", name="X")
    y = te.compute((c // by, h, w, by), lambda o, i, j, k: x[o * by + k, i, j], name="Y")
    return te.create_prim_func([x, y], name="to_blocks")


def from_blocks(c: int, h: int, w: int, by: int) -> PrimFunc:
    x = te.placeholder((c // by, h, w, by), "float32", name="X")
    y = te.compute((c, h, w), lambda o, i, j: x[o // by, i, j, o % by], name="Y")
    return te.create_prim_func([x, y], name="from_blocks")


def transposed_sum(n: int, m: int) -> PrimFunc:
    a, b = te.placeholder((n, m), "float32", name="A"), te.placeholder((m, n), "float32", name="B")
    c = te.placeholder((m,), "float32", name="C")
    y = te.compute((n, m), lambda i, j: te.maximum(a[i, j] + b[j, i] * 2.0 + c[j], 0.0), name="Y")
    return te.create_prim_func([a, b, c, y], name="transposed_sum")


PROGRAMS: dict[str, Callable[[], PrimFunc]] = {
    "a square": lambda: permutation((64, 64), (1, 0)),
    "odd sizes": lambda: permutation((37, 53), (1, 0)),
    "a long and a short side": lambda: permutation((200, 5), (1, 0)),
    "a short and a long side": lambda: permutation((3, 130), (1, 0)),
    "NCHW to NHWC": lambda: permutation((2, 19, 7, 5), (0, 2, 3, 1)),
    "NHWC to NCHW": lambda: permutation((2, 7, 5, 19), (0, 3, 1, 2)),
    "three channels": lambda: permutation((1, 3, 9, 11), (0, 2, 3, 1)),
    "OIHW to HWIO": lambda: permutation((20, 18, 3, 3), (2, 3, 1, 0)),
    "all reversed": lambda: permutation((6, 5, 4, 17), (3, 2, 1, 0)),
    "NCHW to blocks": lambda: to_blocks(32, 5, 7, 16),
    "blocks to NCHW": lambda: from_blocks(32, 5, 7, 16),
    "blocks of 8 to NCHW": lambda: from_blocks(24, 3, 3, 8),
    "a sum with a transposed operand": lambda: transposed_sum(21, 40),
}


def assert_right(func: PrimFunc, schedule: Any) -> None:
    arrays = interpret.random_inputs(func, 1)
    expected = interpret.expected(func, interpret.random_inputs(func, 1))
    tw.build(schedule, target="llvm")(*arrays)
    assert interpret.check(expected, arrays).message == ""


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_structure_of_a_move_is_right(program: str) -> None:
    func = PROGRAMS[program]()
    space = space_of(func, TARGET)
    assert any(s.name.startswith("blocks") for s in space.sketches)
    for sketch in space.sketches:
        for row in sketch.columns.random(5, np.random.default_rng(3)):
            assert_right(func, sketch.resolve(row).apply(func))


@pytest.mark.parametrize("dtype", ["int8", "float16", "bfloat16", "float64", "int64", "bool"])
@pytest.mark.parametrize("shape", [(33, 47), (16, 64)])
def test_every_width_of_element_is_moved_by_blocks(shape: tuple[int, int], dtype: str) -> None:
    func = permutation(shape, (1, 0), dtype)
    for sketch in space_of(func, TARGET).sketches:
        for row in sketch.columns.random(3, np.random.default_rng(4)):
            assert_right(func, sketch.resolve(row).apply(func))


@pytest.mark.parametrize("target", ["llvm -mcpu=x86-64", "llvm -mcpu=x86-64-v3", "llvm -mcpu=cortex-a72"])
def test_other_targets_move_by_blocks_too(target: str) -> None:
    func = permutation((64, 96), (1, 0))
    names = [s.name for s in space_of(func, Target.parse(target)).sketches]
    assert names == ["blocks", "elementwise"]


@pytest.mark.parametrize("program", ["a square", "NCHW to NHWC", "blocks to NCHW"])
def test_the_default_moves_by_blocks(program: str) -> None:
    func = PROGRAMS[program]()
    schedule = default_schedule(func, TARGET)
    assert any(b.scope == "register" for b in schedule.func.allocs)
    assert_right(func, schedule.func)


def test_what_is_read_as_it_is_written_is_no_move() -> None:
    func = permutation((4, 6, 8), (1, 0, 2))
    assert [s.name for s in space_of(func, TARGET).sketches] == ["elementwise"]


def test_strides_and_runs_of_a_permutation() -> None:
    block = permutation((2, 19, 7, 5), (0, 2, 3, 1)).block("Y")[1]
    [(read, along)] = turned_reads(block)
    assert [[it.name for it in run] for run in runs(block)] == [["i0"], ["i1", "i2"], ["i3"]]
    assert (along.name, [stride_of(read, it) for it in block.iters]) == ("i2", [665, 5, 1, 35])


@pytest.mark.parametrize(("dtype", "tiles"), [("float32", (8,)), ("float16", (8,)), ("int8", (8, 16))])
def test_few_columns_are_put_together_by_half_registers(dtype: str, tiles: tuple[int, ...]) -> None:
    func = permutation((1, 3, 64, 64), (0, 2, 3, 1), dtype)
    sketch = space_of(func, Target.parse("llvm -mcpu=x86-64-v4")).sketches[0]
    assert next(k.domain for k in sketch.knobs if k.name == "tile") == tiles
