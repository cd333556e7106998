"""Divisions and remainders of indices as machine code: floors for every sign, in every lane, and no element
touched beyond the last."""

import numpy as np
import pytest

import tilewright as tw
from tilewright.compiler import te
from tilewright.compiler.arith import Var, evaluate, floor_div, floor_mod, poly
from tilewright.compiler.codegen.llvm.indices import _without_lane
from tilewright.compiler.schedule import Schedule


def kernels(rows, lanes, index, pairs):
    """For each (d, e) of the pairs: out[i, j] = index // d * 1000 + index % d % e; j is a vector loop."""
    outputs = [
        te.compute(
            (rows, lanes),
            lambda i, j, d=d, e=e: te.cast(index(i, j) // d * 1000 + index(i, j) % d % e, "int64"),
            name=f"D{n}",
        )
        for n, (d, e) in enumerate(pairs)
    ]
    sch = Schedule(te.create_prim_func(outputs, name="divisions"))
    for n in range(len(outputs)):
        sch.vectorize(sch.get_loops(sch.get_block(f"D{n}"))[1])
    arrays = [np.full((rows, lanes), -1, np.int64) for _ in outputs]
    tw.build(sch)(*arrays)
    i, j = np.mgrid[:rows, :lanes]
    for (d, e), got in zip(pairs, arrays, strict=True):
        x = index(i, j)
        np.testing.assert_array_equal(got, x // d * 1000 + x % d % e, err_msg=f"{d}, {e}, {lanes} lanes")


@pytest.mark.parametrize("lanes", range(1, 9))
@pytest.mark.parametrize(
    "index",
    [lambda i, j: i + j - 64, lambda i, j: i - j * 3 - 40, lambda i, j: i * 50 + j - 500],
    ids=["ramps of one", "falling ramps", "bases apart by 50"],
)
def test_quotients_and_remainders_of_ramps_are_right_in_every_lane(lanes, index):
    """C9: x in -64..64, 1 to 8 lanes, divisors 1 to 24."""
    kernels(129 if index(1, 0) - index(0, 0) == 1 else 21, lanes, index, [(d, d) for d in range(1, 25)])


def lanes_leave_only_what_they_do_not_change(all_lanes, steps, starts):
    i = Var("i", 4)
    for lanes in all_lanes:
        lane = Var("lane", lanes)
        for d in range(1, 25):
            for step in steps:
                for x in starts:
                    p = poly(i) * step + lane + x
                    for f, g in ((floor_div, int.__floordiv__), (floor_mod, int.__mod__)):
                        freed = _without_lane(f(p, d), lane, lanes)
                        for u, v in ((0, 0), (1, lanes - 1), (3, lanes // 2)):
                            assert evaluate(freed, {i: u, lane: v}) == g(step * u + v + x, d)


def test_a_lane_leaves_a_division_only_where_all_lanes_share_the_quotient():
    """C9, the rewriting by itself, for some lanes and bases."""
    lanes_leave_only_what_they_do_not_change((2, 3, 4, 8), (0, 16, 50), range(-64, 65, 9))


@pytest.mark.slow
def test_a_lane_leaves_no_division_that_it_changes():
    """C9, the rewriting by itself: x in -64..64, 1 to 8 lanes, divisors 1 to 24."""
    lanes_leave_only_what_they_do_not_change(range(1, 9), (0, 1, 8, 20, 24, 50), range(-64, 65))


def test_divisions_of_negative_indices_round_down():
    """C10: (3x + y) // 3 for every x and y in -8..8, and with every small divisor."""
    pairs = [(d, d) for d in range(1, 10)]
    kernels(17, 17, lambda i, j: (i - 8) * 3 + (j - 8), pairs)
    kernels(17, 17, lambda i, j: (j - 8) * 3 + (i - 8), pairs)
    kernels(17, 17, lambda i, j: (i - 8) * -2 - (j - 8) * 5 - 1, pairs)


def test_sums_of_multiples_are_divided_as_integers_are():
    """C10: every a x + b y + c with small coefficients and divisors."""
    x, y = Var("x", 4), Var("y", 3)
    for a in range(-4, 5):
        for b in range(-4, 5):
            for c in range(-7, 8, 2):
                p = poly(x) * a + poly(y) * b + c
                for d in range(1, 7):
                    q, r = floor_div(p, d), floor_mod(p, d)
                    for u in range(4):
                        for v in range(3):
                            at, value = {x: u, y: v}, a * u + b * v + c
                            assert (evaluate(q, at), evaluate(r, at)) == divmod(value, d)


@pytest.mark.parametrize("a", range(2, 17))
def test_a_remainder_of_a_remainder_is_not_made_one(a):
    """C11: (x mod a) mod b for b in 2..16 and x in 0..200, in a vector loop."""
    kernels(26, 8, lambda i, j: i * 8 + j, [(a, b) for b in range(2, 17)])


@pytest.mark.parametrize("overlap", [0, 1], ids=["masked", "overlapped"])
@pytest.mark.parametrize("vector", [False, True], ids=["serial", "vector"])
@pytest.mark.parametrize("n", [1, 7, 8, 9, 127, 128, 129, 130])
def test_nothing_beyond_the_last_element_of_a_tiled_loop_is_touched(n, vector, overlap):
    """C12: an extent that 128 and 8 do not divide, with cells behind and before the array."""
    a = te.placeholder((n,), "float32", name="A")
    sch = Schedule(te.create_prim_func([a, te.compute((n,), lambda i: a[i] * 2 + 1, name="B")], name="f"))
    (i,) = sch.get_loops(sch.get_block("B"))
    _, tile = sch.split(i, [None, 128], overlap=overlap if n >= 128 else 0)
    _, inner = sch.split(tile, [None, 8])
    if vector:
        sch.vectorize(inner)
    memory = np.full(n + 512, np.float32(-77))
    out = memory[256 : 256 + n]
    given = np.full(n + 512, np.nan, "f4")
    given[256 : 256 + n] = values = np.arange(n, dtype="f4")
    tw.build(sch)(given[256 : 256 + n], out)
    np.testing.assert_array_equal(out, values * 2 + 1)
    assert (memory[:256] == -77).all() and (memory[256 + n :] == -77).all()


def test_terms_that_cancel_where_a_loop_is_unrolled_leave_nothing_to_divide_by():
    a = te.placeholder((3, 4), "int32", name="A")

    def spread(y, i):
        inside = te.all((i + 1) // 2 > 0, i < ((i + 1) // 2) * 2)
        return te.if_then_else(inside, a[y, (i + 1) // 2 - 1], te.const(0, "int32"))

    s = te.compute((3, 6), spread, name="S")
    y, x = te.reduce_axis((0, 3), name="y"), te.reduce_axis((0, 2), name="x")
    b = te.compute((5,), lambda w: te.sum(s[y, w + x], axis=[y, x]), name="B")
    sch = Schedule(te.create_prim_func([a, b]))
    w, y_loop, x_loop = sch.get_loops(sch.get_block("B"))
    sch.compute_at(sch.get_block("S"), x_loop)
    # With w = 1 the condition is over 1 + f // 2 - f // 2, f being the fused loop.
    sch.fuse(y_loop, x_loop)
    sch.unroll(w)
    given, out = np.arange(1, 13, dtype=np.int32).reshape(3, 4), np.zeros(5, np.int32)
    tw.build(sch)(given, out)
    np.testing.assert_array_equal(out, [15, 15, 18, 18, 21])
