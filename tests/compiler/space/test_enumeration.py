"""Spaces whose legal configs are all known, and why there may be none."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tilewright.compiler import topi
from tilewright.compiler.arith import Knob, evaluate, poly
from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.schedule import Schedule
from tilewright.compiler.space import Constraint, Sketch, space_of
from tilewright.compiler.target import Target

TARGET = Target.parse("llvm -mcpu=x86-64-v4")
#: Beyond what it looks at one by one.
LARGE = 1 << 20


def sketch(knobs: list[Knob], constraints: list[Constraint]) -> Sketch:
    """A sketch of some program; what its knobs do does not matter here."""
    sch = Schedule(topi.create({"op": "add", "shape": [8]}))
    ((_, block),) = sch.func.blocks()
    return Sketch("s", sch.func, sch.trace, tuple(knobs), tuple(constraints), block.name, 0)


def test_every_legal_config_is_found_once_and_in_order(workload: PrimFunc) -> None:
    for of in space_of(workload, TARGET).sketches:
        found = of.columns.every(1 << 16)
        assert found is not None
        if of.columns.size > 20_000:
            continue
        expected = [
            list(row)
            for row in product(*(k.domain for k in of.knobs))
            if all(
                evaluate(c.value, dict(zip(of.knobs, row, strict=True))) <= c.at_most for c in of.constraints
            )
        ]
        assert found.tolist() == expected


@pytest.mark.parametrize("legal", [1, 3, 7])
def test_the_few_legal_configs_of_a_huge_space_are_all_known(legal: int) -> None:
    """Eight knobs of 100 values each, whose product is at most `legal` in all but the last."""
    knobs = [Knob(f"k{n}", range(1, 101)) for n in range(8)]
    total = poly(1)
    for k in knobs[1:]:
        total = total * k
    columns = sketch(
        knobs, [Constraint("small", total, 1), Constraint("first", poly(knobs[0]), legal)]
    ).columns
    found = columns.every(1000)
    assert found is not None and columns.size == 100**8
    assert found.tolist() == [[n + 1, *[1] * 7] for n in range(legal)]
    drawn = columns.random(64, np.random.default_rng(0))
    assert {tuple(r) for r in drawn.tolist()} == {tuple(r) for r in found.tolist()}


def test_more_than_asked_for_are_not_listed() -> None:
    columns = sketch([Knob("a", range(1, 11)), Knob("b", range(1, 11))], []).columns
    assert columns.every(99) is None
    found = columns.every(100)
    assert found is not None and len(found) == 100


def test_what_cannot_be_gone_through_is_drawn() -> None:
    """No constraint prunes on the way, and few configs are legal: a twentieth of a thousandth."""
    knobs = [Knob(f"k{n}", range(1, 65)) for n in range(5)]
    total = sum((poly(k) for k in knobs), poly(0))
    columns = sketch(knobs, [Constraint("large", -1 * total, -5 * 60)]).columns
    assert columns.every(LARGE) is None
    drawn = columns.random(8, np.random.default_rng(0))
    assert len(drawn) and (drawn.sum(axis=1) >= 300).all()


def test_sizes_beyond_float32_are_compared_exactly() -> None:
    extent, k = (1 << 24) + 2, Knob("k", [2, 4])
    whole = poly(extent) - poly(k) * (extent // 4)
    columns = sketch([k], [Constraint("covered", whole, 2)]).columns
    assert columns.valid(np.array([[2], [4]])).tolist() == [False, True]
    almost = sketch([k], [Constraint("all of it", poly(k) * ((1 << 24) + 1), 2 << 24)]).columns
    assert almost.valid(np.array([[2]])).tolist() == [False]


def test_an_empty_space_names_the_constraints_that_no_config_satisfies_together() -> None:
    a, b = Knob("a", range(1, 9)), Knob("b", range(1, 9))
    constraints = [
        Constraint("small", poly(a) * b, 8),
        Constraint("bounded", poly(b), 4),
        Constraint("busy", -1 * poly(a), -7),
        Constraint("wide", -1 * poly(b), -2),
    ]
    columns = sketch([a, b], constraints).columns
    assert columns.every(100) is not None and len(columns.random(4, np.random.default_rng(0))) == 0
    assert columns.conflict() == ("small", "busy", "wide")


def test_a_structure_that_no_config_fits_is_refused_with_the_constraint() -> None:
    tiny = Target.parse("llvm -mcpu=x86-64-v4 -l1d=64 -l2=64 -l3=64")
    space = space_of(topi.create({"op": "matmul", "m": 64, "n": 64, "k": 64}), tiny)
    assert space.refused["lanes j, pack B"] == "no values of its knobs satisfy 'panel of B'"
