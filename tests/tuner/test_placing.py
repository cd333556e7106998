"""Schedules of earlier searches as points of another space."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import POWERS, FakeSpace, space, tiles

import tilewright as tw
from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.space import space_of
from tilewright.compiler.target import Target
from tilewright.compiler.topi import create
from tilewright.tuner.placing import Misplaced, Placed, nearest_legal, place


def trace(sketch: str, **knobs: int) -> dict[str, Any]:
    return {"version": 1, "steps": {"sketch": sketch, **knobs}}


def test_a_trace_of_the_space_is_its_point() -> None:
    found = place(trace("s1", a=4, b=2), space({"a": POWERS, "b": POWERS}, {"a": POWERS, "b": POWERS}))
    assert isinstance(found, Placed)
    assert (found.sketch, found.row) == ("s1", (4, 2))


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (trace("s0", a=3), "knob 'a' takes other values"),
        (trace("s0", a=8), "breaks small"),
        (trace("s9", a=4), "its steps have other numbers"),
        (trace("s0", b=4), "no sketch has its steps"),
        ({"version": 1}, "no sketch has its steps"),
    ],
)
def test_what_is_no_point_says_why(made: dict[str, Any], reason: str) -> None:
    found = place(made, space({"a": (1, 2, 4, 8)}, rules={"small": lambda pop: pop[:, 0] > 4}))
    assert isinstance(found, Misplaced)
    assert found.reason == reason


def test_a_wrong_value_is_named_with_those_that_are_right() -> None:
    assert str(place(trace("s0", a=3), space({"a": (1, 2, 4)}))) == (
        "knob 'a' of sketch 's0' takes one of 1, 2, 4, not 3"
    )


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 5000), min_size=6, max_size=6), st.integers(0, 3))
def test_the_nearest_row_is_legal_whatever_was_wanted(values: list[int], limit: int) -> None:
    of = tiles_within(1 << (2 * limit))
    row = nearest_legal(of.sketches[0].columns, values, np.random.default_rng(0))
    assert row is not None
    assert of.sketches[0].columns.valid(row[None, :])[0]
    assert all(int(v) in knob.domain for v, knob in zip(row, of.sketches[0].columns.knobs, strict=True))


def tiles_within(registers: int) -> FakeSpace:
    rules = {"registers": lambda pop: np.prod(pop[:, :4], axis=1) > registers}
    return space({f"k{n}": POWERS for n in range(6)}, rules=rules)


def test_a_legal_row_is_its_own_nearest() -> None:
    columns = tiles().sketches[0].columns
    rows = columns.random(50, np.random.default_rng(1))
    found = [nearest_legal(columns, [int(v) for v in row], np.random.default_rng(0)) for row in rows]
    np.testing.assert_array_equal(np.array(found), rows)


def test_a_space_without_a_legal_row_has_no_nearest() -> None:
    none = space({"a": (1, 2)}, rules={"all": lambda pop: pop[:, 0] > 0})
    assert nearest_legal(none.sketches[0].columns, [1], np.random.default_rng(0)) is None


def test_a_value_between_two_goes_to_the_nearer_ratio() -> None:
    columns = space({"a": (1, 4, 64)}).sketches[0].columns
    found = [nearest_legal(columns, [value], np.random.default_rng(0)) for value in (0, 3, 15, 17, 900)]
    assert [int(row[0]) for row in found if row is not None] == [1, 4, 4, 64, 64]


def matmul(m: int, n: int, k: int) -> PrimFunc:
    return create({"op": "matmul", "m": m, "n": n, "k": k, "dtype": "float32"})


REAL = {
    "a matmul": {"op": "matmul", "m": 192, "n": 160, "k": 96},
    "a softmax": {"op": "softmax", "m": 32, "n": 100},
}


@pytest.mark.parametrize("name", REAL)
def test_every_trace_of_a_real_space_is_found_again(name: str) -> None:
    of = space_of(create({**REAL[name], "dtype": "float32"}), Target.parse("llvm -mcpu=x86-64-v3"))
    rng = np.random.default_rng(3)
    for sketch in of.sketches:
        for row in sketch.columns.random(5, rng):
            stored = json.loads(json.dumps(sketch.resolve(row).to_json()))
            found = place(stored, of, sketch.name)
            assert isinstance(found, Placed)
            made = next(s for s in of.sketches if s.name == found.sketch).resolve(found.row)
            assert made.canonical_json() == tw.Trace.from_json(stored).canonical_json()


def test_what_is_taken_over_from_another_shape_is_legal() -> None:
    target = Target.parse("llvm -mcpu=x86-64-v3")
    old, new = (space_of(matmul(*shape), target) for shape in ((512, 512, 512), (96, 40, 127)))
    rng = np.random.default_rng(4)
    known = {sketch.name: sketch for sketch in new.sketches}
    moved = 0
    for sketch in (s for s in old.sketches if s.name in known):
        theirs = known[sketch.name]
        for row in sketch.columns.random(8, rng):
            found = theirs.decisions(sketch.resolve(row).to_json())
            assert found is not None
            values = [found.knobs[knob.name] for knob in theirs.columns.knobs]
            nearest = nearest_legal(theirs.columns, values, rng)
            assert nearest is not None
            assert theirs.columns.valid(nearest[None, :])[0]
            moved += 1
    assert moved >= 16
