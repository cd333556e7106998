"""Search spaces that a user writes."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright.compiler.ir import PrimFunc, structural_equal
from tilewright.compiler.schedule import Schedule, ScheduleError
from tilewright.compiler.space import SpaceError, user_space
from tilewright.compiler.topi import create


@pytest.fixture
def func() -> PrimFunc:
    return create({"op": "matmul", "m": 8, "n": 32, "k": 6})


def tiles(sch: Schedule) -> None:
    i, j, k = sch.get_loops(sch.get_block("C"))
    i0, i1 = sch.split(i, sch.sample_perfect_tile(i, 2, names=["rows"]))
    j0, j1 = sch.split(j, [None, sch.sample_categorical([8, 16], "columns")])
    sch.reorder(*sch.sample_structure([(i0, j0), (j0, i0)]), k, i1, j1)
    sch.vectorize(j1)


def test_each_structure_is_a_sketch_with_the_knobs_open(func: PrimFunc) -> None:
    space = user_space(func, tiles)
    assert [(s.name, [k.name for k in s.knobs], s.columns.size) for s in space.sketches] == [
        ("i_0 j_0", ["rows", "columns"], 8),
        ("j_0 i_0", ["rows", "columns"], 8),
    ]


def test_integers_in_the_sketch_give_the_schedule_made_with_integers(func: PrimFunc) -> None:
    sketch = user_space(func, tiles).sketches[1]
    sch = Schedule(func)
    i, j, k = sch.get_loops(sch.get_block("C"))
    i0, i1 = sch.split(i, [None, 4])
    j0, j1 = sch.split(j, [None, 16])
    sch.reorder(j0, i0, k, i1, j1)
    sch.vectorize(j1)
    assert structural_equal(sketch.resolve([4, 16]).apply(func).func, sch.func)


def in_columns(knobs: Mapping[str, Any]) -> Any:
    return knobs["rows"] * knobs["columns"] <= 32


def one_by_one(knobs: Mapping[str, Any]) -> Any:
    return knobs["rows"] <= 4 and knobs["columns"] <= 32 // knobs["rows"]


@pytest.mark.parametrize("constraint", [in_columns, one_by_one])
def test_a_constraint_prunes_configs_however_it_is_written(
    func: PrimFunc, constraint: Callable[[Mapping[str, Any]], Any]
) -> None:
    columns = user_space(func, tiles, [constraint]).sketches[0].columns
    assert columns.every(1000).tolist() == [[1, 8], [1, 16], [2, 8], [2, 16], [4, 8]]
    assert columns.violations(np.array([[8, 16], [1, 8]])) == {constraint.__name__: 1}


def test_a_constraint_on_a_knob_of_one_structure_leaves_the_others_alone(func: PrimFunc) -> None:
    def space(sch: Schedule) -> None:
        i, _, k = sch.get_loops(sch.get_block("C"))
        if sch.sample_structure(["rows", "steps"]) == "rows":
            sch.split(i, [None, sch.sample_categorical([2, 4], "rows")])
        else:
            sch.split(k, [None, sch.sample_categorical([2, 3], "steps")])

    found = user_space(func, space, [lambda knobs: knobs["rows"] < 4]).sketches
    assert [s.columns.every(1000).tolist() for s in found] == [[[2]], [[2], [3]]]


def test_a_space_without_choices_is_one_schedule(func: PrimFunc) -> None:
    def once(sch: Schedule) -> None:
        sch.parallel(sch.get_loops(sch.get_block("C"))[0])

    (sketch,) = user_space(func, once).sketches
    assert (sketch.name, sketch.knobs, sketch.columns.every(1000).shape) == ("once", (), (1, 0))


def test_a_refused_primitive_names_the_users_line(func: PrimFunc) -> None:
    def wrong(sch: Schedule) -> None:
        sch.vectorize(sch.get_loops(sch.get_block("C"))[2])

    with pytest.raises(ScheduleError) as caught:
        user_space(func, wrong)
    assert caught.value.span is not None
    line = Path(__file__).read_text().split("\n")[caught.value.span.line - 1]
    assert line.strip() == 'sch.vectorize(sch.get_loops(sch.get_block("C"))[2])'


def test_a_constraint_cannot_change_the_configs(func: PrimFunc) -> None:
    def product(knobs: Mapping[str, Any]) -> Any:
        out = knobs["rows"]
        out *= knobs["columns"]
        return out <= 32

    columns = user_space(func, tiles, [product]).sketches[0].columns
    assert columns.every(1000).tolist() == [[1, 8], [1, 16], [2, 8], [2, 16], [4, 8]]


@pytest.mark.parametrize("constraints", [in_columns, None, 3, "ab", iter([in_columns])])
def test_constraints_are_a_list(func: PrimFunc, constraints: Any) -> None:
    with pytest.raises(SpaceError, match="constraints are a list of functions, got"):
        user_space(func, tiles, constraints)


def endless(sch: Schedule) -> None:
    for _ in range(7):
        sch.sample_structure([0, 1])


@pytest.mark.parametrize(
    ("space", "constraints", "text"),
    [
        (3, [], "space is a function of a Schedule, got int"),
        (tiles, [3], "a constraint is a function of the knobs, got int"),
        (endless, [], "the space samples more than 64 combinations of structures; leave numbers to knobs"),
        (
            tiles,
            [lambda knobs: knobs["row"] < 3],
            "constraint 1 reads a knob that no sketch has; the knobs are columns, rows",
        ),
        (
            tiles,
            [lambda knobs: knobs["rows"] * 2],
            "must answer a boolean, or one for each config",
        ),
    ],
)
def test_what_is_no_space_is_refused(func: PrimFunc, space: Any, constraints: Any, text: str) -> None:
    with pytest.raises(SpaceError, match=re.escape(text)):
        user_space(func, space, constraints)


def raises_on_columns(knobs: Mapping[str, Any]) -> Any:
    return knobs["rows"] * no_such_number  # type: ignore[name-defined]  # noqa: F821


def raises_on_one(knobs: Mapping[str, Any]) -> bool:
    if knobs["rows"] > 0:  # of a column: TypeError or ValueError, and each config is asked by itself
        raise LookupError("no such row")
    return True


@pytest.mark.parametrize(
    ("constraint", "text"),
    [
        (
            raises_on_columns,
            "raises_on_columns raised NameError at test_user.py:{}: name 'no_such_number' is",
        ),
        (raises_on_one, "raises_on_one raised LookupError at test_user.py:{}: no such row"),
    ],
)
def test_a_constraint_that_raises_is_named_with_its_line(
    func: PrimFunc, constraint: Callable[[Mapping[str, Any]], Any], text: str
) -> None:
    line = constraint.__code__.co_firstlineno + (1 if constraint is raises_on_columns else 2)
    with pytest.raises(SpaceError) as caught:
        user_space(func, tiles, [constraint]).sketches[0].columns.violations(np.array([[8, 16]]))
    assert str(caught.value).startswith(text.format(line))
