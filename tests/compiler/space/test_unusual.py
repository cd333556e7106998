"""Short axes, few channels, prologues and several groups: each has a space of its own, in lanes, with configs
that are legal and right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.compiler import interpret, te, topi
from tilewright.compiler.ir import LoopKind, PrimFunc
from tilewright.compiler.space import Sketch, default_schedule, space_of
from tilewright.compiler.target import Target

TARGET = Target.parse("llvm -mcpu=x86-64-v2")


def conv(layout: str, ci: int, co: int, h: int, w: int, **more: Any) -> dict[str, Any]:
    return {"op": "conv2d", "layout": layout, "ci": ci, "co": co, "h": h, "w": w, "kh": 3, "kw": 3, **more}


def with_prologue(dtype: str, m: int, n: int, k: int, *, transposed: bool = False) -> PrimFunc:
    """The product of twice A with B, or with B + 1 where that is stored [n, k]."""
    wide = {"float16": "float32", "bfloat16": "float32", "int8": "int32"}.get(dtype, dtype)
    a = te.placeholder((m, k), dtype, name="A")
    b = te.placeholder((n, k) if transposed else (k, n), dtype, name="B")
    x = te.compute((m, k), lambda i, j: a[i, j] * 2, name="X")
    y = te.compute((n, k), lambda i, j: b[i, j] + 1, name="Y") if transposed else b
    s = te.reduce_axis((0, k), name="s")

    def element(i: te.Index, j: te.Index) -> te.Value:
        right = y[j, s] if transposed else y[s, j]
        return te.sum(te.cast(x[i, s], wide) * te.cast(right, wide), axis=s)

    return te.create_prim_func([a, b, te.compute((m, n), element, name="C")], name="product")


def attention() -> PrimFunc:
    b, m, n, d = 2, 17, 5, 13
    q, k, v = (te.placeholder((b, r, d), name=name) for r, name in ((m, "Q"), (n, "K"), (n, "V")))
    e, j1, j2, j3 = (te.reduce_axis((0, x), name=y) for x, y in ((d, "e"), (n, "j1"), (n, "j2"), (n, "j3")))
    s = te.compute((b, m, n), lambda h, i, j: te.sum(q[h, i, e] * k[h, j, e], axis=e), name="S")
    most = te.compute((b, m), lambda h, i: te.max(s[h, i, j1], axis=j1), name="M")
    p = te.compute((b, m, n), lambda h, i, j: te.exp(s[h, i, j] - most[h, i]), name="P")
    t = te.compute((b, m), lambda h, i: te.sum(p[h, i, j2], axis=j2), name="T")
    w = te.compute((b, m, n), lambda h, i, j: p[h, i, j] / t[h, i], name="W")
    o = te.compute((b, m, d), lambda h, i, x: te.sum(w[h, i, j3] * v[h, j3, x], axis=j3), name="O")
    return te.create_prim_func([q, k, v, o], name="attention")


CASES: dict[str, Callable[[], PrimFunc]] = {
    "groups, strided windows of one element": lambda: topi.create(
        conv("NCHW", 8, 12, 9, 9, groups=4, stride=2, pad=1) | {"kh": 1, "kw": 1}
    ),
    "groups, windows along one axis": lambda: topi.create(
        conv("NCHW", 12, 9, 7, 3, groups=3, pad=1) | {"kh": 1}
    ),
    "groups of two output channels": lambda: topi.create(
        conv("NHWC", 32, 8, 8, 17, groups=4, stride=2, pad=2)
    ),
    "groups, windows of one element, channels last": lambda: topi.create(
        conv("NHWC", 8, 34, 5, 7, groups=2) | {"kh": 1, "kw": 1}
    ),
    "groups at a single place": lambda: topi.create(conv("NHWC", 12, 24, 3, 3, groups=3)),
    "three output channels, channels last": lambda: topi.create(conv("NHWC", 16, 3, 9, 9, pad=1)),
    "one output channel, channels last": lambda: topi.create(conv("NHWC", 16, 1, 40, 40, pad=1)),
    "rows of three places": lambda: topi.create(conv("NCHW", 8, 1, 13, 3, pad=1)),
    "pooling to three places": lambda: topi.create(
        {"op": "pool3d", "c": 2, "d": 8, "h": 9, "w": 5, "window": 3, "stride": 1, "function": "max"}
    ),
    "pooling of single elements": lambda: topi.create(
        {"op": "pool2d", "c": 8, "h": 9, "w": 8, "window": 1, "stride": 1, "function": "max"}
    ),
    "three columns": lambda: topi.create({"op": "matmul", "m": 2, "n": 3, "k": 47}),
    "one column, A transposed": lambda: topi.create(
        {"op": "matmul", "m": 64, "n": 1, "k": 5, "transpose_a": True}
    ),
    "float16 with a prologue": lambda: with_prologue("float16", 9, 17, 8),
    "bfloat16 with two prologues": lambda: with_prologue("bfloat16", 9, 17, 8, transposed=True),
    "int8 with a prologue": lambda: with_prologue("int8", 9, 17, 8),
    "two prologues that lanes cross": lambda: with_prologue("int32", 9, 33, 7, transposed=True),
    "prologue and few columns": lambda: with_prologue("float32", 9, 3, 37),
    "attention": attention,
}


@pytest.fixture(params=CASES, ids=lambda name: name)
def program(request: pytest.FixtureRequest) -> PrimFunc:
    return CASES[request.param]()


def in_lanes(sketch: Sketch) -> bool:
    """Whether the block that does most of the work runs in lanes."""
    path, _ = sketch.func.block(sketch.main)
    return any(f.kind is LoopKind.VECTORIZED for f in path)


def test_every_sketch_runs_in_lanes(program: PrimFunc) -> None:
    space = space_of(program, TARGET)
    assert [s.name for s in space.sketches if not in_lanes(s)] == []
    assert space.refused == {}


def test_every_sketch_has_legal_configs(program: PrimFunc) -> None:
    for sketch in space_of(program, TARGET).sketches:
        population = sketch.columns.random(100, np.random.default_rng(0))
        assert len(population) == 100, sketch.name
        assert sketch.columns.valid(population).all()


def test_the_default_and_others_are_right(program: PrimFunc) -> None:
    arrays = interpret.random_inputs(program, 0)
    expected = interpret.expected(program, arrays)
    schedules = [default_schedule(program, TARGET)]
    for sketch in space_of(program, TARGET).sketches:
        schedules += [
            sketch.resolve(row).apply(program) for row in sketch.columns.random(1, np.random.default_rng(1))
        ]
    for schedule in schedules:
        given = [x.copy() for x in arrays]
        tw.build(schedule, target=TARGET)(*given)
        result = interpret.check(expected, given)
        assert result.ok, result.message


def test_a_program_that_is_scheduled_stays_as_it_is() -> None:
    func = topi.create({"op": "pool1d", "c": 1, "w": 14, "window": 3, "function": "avg"})
    scheduled = default_schedule(func, TARGET).func
    assert [s.name for s in space_of(scheduled, TARGET).sketches] == ["as written"]
    assert default_schedule(scheduled, TARGET).func is scheduled


def test_several_groups_have_legal_configs_where_each_allows_few() -> None:
    for sketch in space_of(attention(), Target.parse("llvm -mcpu=x86-64-v4")).sketches:
        population = sketch.columns.random(100, np.random.default_rng(0))
        assert len(population) == 100, sketch.name
        assert sketch.columns.valid(population).all()


def test_a_costly_epilogue_that_is_unrolled_leaves_a_kernel_of_some_size() -> None:
    func = topi.create(conv("NCHW", 8, 32, 14, 14, pad=1, activation="gelu"))
    target = Target.parse("llvm -mcpu=x86-64-v4")
    for sketch in space_of(func, target).sketches:
        population = sketch.columns.random(300, np.random.default_rng(0))
        # Narrow tiles of many rows are written across by the shortest vectors.
        column = next((n for n, k in enumerate(sketch.knobs) if k.name == "w_r"), 0)
        for row in population[np.argsort(population[:, column], kind="stable")][:2]:
            tw.build(sketch.resolve(row).apply(func), target=target)


def test_a_gather_at_turned_and_clamped_places_has_a_space() -> None:
    """Where the last vector reaches beyond the row, an index would be below 0 if it were not clamped."""
    a = te.placeholder((9, 7), "float32", name="A")
    b = te.compute((3, 7), lambda i, j: a[i + 4, te.clamp(10 - j, 0, 6)], name="B")
    func = te.create_prim_func([a, b], name="gather")
    found = space_of(func, TARGET)
    assert ([s.name for s in found.sketches], dict(found.errors)) == (["elementwise"], {})
    kernel = tw.build(default_schedule(func, TARGET).func)
    x, y = np.arange(63, dtype="f4").reshape(9, 7), np.full((3, 7), np.nan, dtype="f4")
    kernel(x, y)
    np.testing.assert_array_equal(y, x[4:7][:, np.clip(10 - np.arange(7), 0, 6)])


def test_rows_none_of_which_can_be_read_in_lanes_leave_a_structure_out_with_the_reason() -> None:
    a = te.placeholder((6, 8), "float32", name="A")
    k, m = te.reduce_axis((0, 8), name="k"), te.reduce_axis((0, 8), name="m")
    b = te.compute((3, 8), lambda i, j: a[i * 2, te.clamp(9 - j, 0, 7)], name="B")
    s = te.compute((3,), lambda i: te.sum(b[i, k], axis=k), name="s")
    c = te.compute((3, 8), lambda i, j: b[i, j] * 2 - s[i], name="C")
    t = te.compute((3,), lambda i: te.sum(c[i, m], axis=m), name="t")
    d = te.compute((3, 8), lambda i, j: c[i, j] * 2 - t[i], name="D")
    found = space_of(te.create_prim_func([a, d], name="rows_of_gathers"), TARGET)
    reason = "rows: no block has an axis that lanes can run along"
    assert dict(found.refused) == {"rows, recompute B C": reason}
    assert (dict(found.errors), len(found.sketches) > 0) == ({}, True)


def own_product(dtype: str, *, transposed: bool = False, constant: bool = False) -> PrimFunc:
    """A · Aᵀ of 33 x 17, or Aᵀ · A."""
    wide = {"bfloat16": "float32", "int8": "int32"}.get(dtype, dtype)
    a = te.placeholder((17, 33) if transposed else (33, 17), dtype, name="A", constant=constant)
    k = te.reduce_axis((0, 17), name="k")

    def element(i: te.Index, j: te.Index) -> te.Value:
        x, y = (a[k, i], a[k, j]) if transposed else (a[i, k], a[j, k])
        return te.sum(te.cast(x, wide) * te.cast(y, wide), axis=k)

    return te.create_prim_func([a, te.compute((33, 33), element, name="C")], name="own_product")


@pytest.mark.parametrize(
    ("func", "names"),
    [
        (own_product("float32"), ["lanes j, pack A_local, A as two arrays"]),
        (
            own_product("float32", transposed=True),
            ["lanes j, pack A_local, A as two arrays", "lanes j"],
        ),
        (
            own_product("float64", constant=True),
            [f"lanes {x}, pack A, pack A_local, A as two arrays" for x in "ij"],
        ),
        (own_product("int8"), ["dot product over k, lanes j, A as two arrays"]),
        (own_product("bfloat16"), ["dot product over k, lanes j, A as two arrays"]),
    ],
    ids=["float32", "transposed", "constant", "int8", "bfloat16"],
)
def test_the_product_of_an_array_with_its_own_transpose_is_packed_as_that_of_two(
    func: PrimFunc, names: list[str]
) -> None:
    found = space_of(func, Target.parse("llvm -mcpu=sapphirerapids"))
    assert ([s.name for s in found.sketches], dict(found.refused), dict(found.errors)) == (names, {}, {})
    before = interpret.random_inputs(func, 1)
    expected = interpret.expected(func, before)
    for sketch in found.sketches:
        for row in sketch.columns.random(2, np.random.default_rng(0)):
            arrays = [x.copy() for x in before]
            interpret.run(sketch.resolve(row).apply(func).func, arrays)
            result = interpret.check(expected, arrays)
            assert result.ok, f"{sketch.name} {sketch.config(row)}: {result.message}"


def test_the_product_of_an_array_with_its_own_transpose_has_a_space_and_is_right() -> None:
    """One array is read along the lanes and across them: a copy of a tile of it is no box."""
    a, k = te.placeholder((33, 17), "float32", name="A"), te.reduce_axis((0, 17), name="k")
    c = te.compute((33, 33), lambda i, j: te.sum(a[i, k] * a[j, k], axis=k), name="C")
    func = te.create_prim_func([a, c], name="own_transpose")
    found = space_of(func, TARGET)
    assert dict(found.errors) == {}
    x = (np.arange(33 * 17, dtype="f4").reshape(33, 17) % 7) - 3
    for sketch in found.sketches:
        (row,) = sketch.columns.random(1, np.random.default_rng(0))
        y = np.full((33, 33), np.nan, dtype="f4")
        tw.build(sketch.resolve(row).apply(func))(x, y)
        np.testing.assert_array_equal(y, x @ x.T, err_msg=sketch.name)
