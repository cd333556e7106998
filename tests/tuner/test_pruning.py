"""What constraints rule out before anything is built, and that the budget is not spent on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.random import Generator
from synthetic import POWERS, run, session, space, tiles

from tilewright.compiler import topi
from tilewright.compiler.arith import evaluate
from tilewright.compiler.space import space_of
from tilewright.compiler.target import Target
from tilewright.tuner.outcome import Outcome
from tilewright.tuner.pruning import Pruning, pruned
from tilewright.tuner.strategies import Point, SearchStrategy, View
from tilewright.tuner.strategies.evolutionary import Evolutionary
from tilewright.tuner.strategies.random import Random

MATMUL = {"op": "matmul", "m": 256, "n": 256, "k": 256}
#: 16 registers, and caches that few packed panels fit into.
SMALL = Target.parse("llvm -mcpu=x86-64-v2 -l1d=4096 -l2=8192 -l3=16384")
BOTH = pytest.mark.parametrize("strategy", [Random(), Evolutionary()], ids=["random", "evolutionary"])


def test_legal_configs_of_a_small_space_are_counted() -> None:
    small = space({"a": POWERS, "b": POWERS}, rules={"registers": lambda pop: pop[:, 0] * pop[:, 1] > 64})
    assert pruned(small) == (Pruning("s0", 64, 28, True, {"registers": 0.5625}),)
    assert pruned(small)[0].pruned == 36


def test_legal_configs_of_a_large_space_are_estimated() -> None:
    found = pruned(tiles(1))[0]
    assert (found.configs, found.exact) == (8**6, False)
    assert abs(found.legal / found.configs - 28 / 64) < 0.02


def test_every_sketch_of_a_kernel_says_what_its_constraints_rule_out() -> None:
    of = space_of(topi.create(MATMUL), Target.parse("llvm -mcpu=x86-64-v4"))
    for sketch, found in zip(of.sketches, pruned(of), strict=True):
        every = sketch.columns.every(1 << 16)
        assert every is not None
        assert (found.exact, found.legal, found.configs) == (True, len(every), sketch.columns.size)
        assert list(found.broken.values()) == sorted(found.broken.values(), reverse=True)
        assert {"registers"} <= found.broken.keys() <= {c.label for c in sketch.constraints}


@BOTH
def test_nothing_beyond_a_small_target_is_measured_and_the_report_says_what_was_left_out(
    strategy: SearchStrategy,
) -> None:
    of = space_of(topi.create(MATMUL), SMALL)
    searched = session(of, strategy, 48)
    rows = [(c.sketch, c.row) for c in run(searched, lambda c: Outcome(seconds=1e-3 + 1e-6 * c.number))]
    sketches = {s.name: s for s in of.sketches}
    assert len(rows) == 48
    assert {name for name, _ in rows} == set(sketches)
    for name, row in rows:
        assert row is not None
        knobs = dict(zip(sketches[name].knobs, row, strict=True))
        for c in sketches[name].constraints:
            assert evaluate(c.value, knobs) <= c.at_most
    (packed,) = (p for p in pruned(of) if "pack" in p.sketch)
    limits = {c.label: c.at_most for c in sketches[packed.sketch].constraints}
    assert (limits["panel of B"], limits["registers"]) == (16384, 16)
    assert packed.broken["panel of B"] > 0.5 and packed.broken["registers"] > 0.5
    assert packed.legal < packed.configs / 10


def test_a_point_that_is_illegal_costs_no_trial() -> None:
    """A strategy that proposes whatever it draws: half of it breaks the constraint, or is no value."""

    @dataclass(frozen=True)
    class Wild:
        def describe(self) -> str:
            return "wild"

        def propose(self, view: View, count: int, rng: Generator) -> Iterator[Point]:
            while True:
                yield Point(0, rng.choice(POWERS, 6) + (rng.random(6) < 0.1))

    of = tiles(1)
    searched = session(of, Wild(), 4)
    rows = np.array([c.row for c in run(searched, lambda c: Outcome(seconds=1.0))])
    assert (searched.told, searched.state) == (4, "completed")
    assert of.sketches[0].columns.valid(rows).all() and np.isin(rows, POWERS).all()
