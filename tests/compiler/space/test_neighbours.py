"""What lies one step away from a config."""

from __future__ import annotations

import numpy as np

from tilewright.compiler import te, topi
from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.schedule import Schedule
from tilewright.compiler.space import Sketch, space_of, user_space
from tilewright.compiler.target import Target

TARGET = Target.parse("llvm -mcpu=x86-64-v4")


def small() -> Sketch:
    """Two factors of 24 and a width, at most 24 elements in a tile."""
    x = te.placeholder((24,), "float32", name="X")
    func = te.create_prim_func([x, te.compute((24,), lambda i: x[i] + 1.0, name="Y")], name="f")

    def space(sch: Schedule) -> None:
        (i,) = sch.get_loops(sch.get_block("Y"))
        sch.split(i, sch.sample_perfect_tile(i, 3, 12, names=["a", "b"]))

    (sketch,) = user_space(func, space).sketches
    return sketch


def test_neighbours_are_all_that_differ_in_one_factor_or_exchange_one() -> None:
    columns = small().columns
    every = columns.every(1000)
    for row in every:
        expected = {
            tuple(other)
            for other in every.tolist()
            if (other != row).sum() == 1 or ((other != row).sum() == 2 and np.prod(other) == np.prod(row))
        }
        found = columns.neighbours(row[None, :]).tolist()
        assert (len(found), set(map(tuple, found))) == (len(expected), expected)


def test_the_nearest_neighbours_come_first_and_none_is_of_the_population() -> None:
    columns = small().columns
    assert columns.neighbours(np.array([[2, 1], [2, 2]])).tolist()[:4] == [[1, 1], [3, 1], [1, 2], [3, 2]]


def test_nothing_lies_beside_the_only_config() -> None:
    space = space_of(topi.create({"op": "matmul", "m": 1, "n": 1, "k": 1}), TARGET)
    for sketch in space.sketches:
        every = sketch.columns.every(1000)
        assert len(sketch.columns.neighbours(every)) == 0


def test_ten_thousand_children_and_neighbours_are_legal(workload: PrimFunc) -> None:
    rng = np.random.default_rng(0)
    for sketch in space_of(workload, TARGET).sketches:
        columns = sketch.columns
        parents = columns.random(64, rng)
        children = columns.mutate(parents, 10_000, rng)
        beside = columns.neighbours(parents)
        assert 9_900 < len(children) <= 10_000
        assert columns.valid(children).all() and columns.valid(beside).all()
        for k, knob in enumerate(sketch.knobs):
            assert np.isin(children[:, k], knob.domain).all() and np.isin(beside[:, k], knob.domain).all()
