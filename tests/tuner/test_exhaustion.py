"""Budgets larger than the space."""

from __future__ import annotations

import pytest
from synthetic import run, session, space

from tilewright.compiler import topi
from tilewright.compiler.schedule import Schedule
from tilewright.compiler.space import space_of, user_space
from tilewright.compiler.target import Target
from tilewright.tuner.candidate import Candidate
from tilewright.tuner.outcome import Outcome
from tilewright.tuner.strategies import SearchStrategy
from tilewright.tuner.strategies.evolutionary import Evolutionary
from tilewright.tuner.strategies.random import Random

BOTH = pytest.mark.parametrize("strategy", [Random(), Evolutionary()], ids=["random", "evolutionary"])


def seconds(candidate: Candidate) -> Outcome:
    return Outcome(seconds=1e-3 / (1 + candidate.number % 7))


@BOTH
@pytest.mark.parametrize("points", [1, 3, 7])
def test_the_few_legal_configs_of_a_kernel_are_measured_and_no_more(
    strategy: SearchStrategy, points: int
) -> None:
    def tiles(sch: Schedule) -> None:
        loop = sch.get_loops(sch.get_block("Y"))[-1]
        sch.split(loop, [None, *(sch.sample_categorical(range(1, 33), f"f{n}") for n in range(3))])

    func = topi.create({"op": "add", "shape": [1 << 15]})
    of = user_space(func, tiles, [lambda k: (k["f0"] <= points) & (k["f1"] == 5) & (k["f2"] == 3)])
    searched = session(of, strategy, 64)
    run(searched, seconds)
    assert (searched.told, searched.conclusion) == (
        points,
        ("exhausted", f"the space has no more than {points} candidates"),
    )


@BOTH
def test_ten_times_the_budget_measures_each_of_488_configs_once(strategy: SearchStrategy) -> None:
    of = space({"a": range(61), "b": range(16)}, rules={"half": lambda pop: pop[:, 1] >= 8})
    searched = session(of, strategy, 4880, batch_size=64)
    told = run(searched, seconds)
    assert len({c.key for c in told}) == len(told) == 488
    assert searched.conclusion == ("exhausted", "the space has no more than 488 candidates")


def test_a_whole_space_of_rules_is_measured_and_then_exhausted() -> None:
    of = space_of(topi.create({"op": "softmax", "m": 64, "n": 256}), Target.parse("llvm -mcpu=x86-64-v4"))
    legal = sum(len(every) for s in of.sketches if (every := s.columns.every(1 << 16)) is not None)
    searched = session(of, Random(), 10 * legal)
    run(searched, seconds)
    assert (searched.told, searched.state) == (legal, "exhausted")
