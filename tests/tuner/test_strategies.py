"""What is proposed."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from synthetic import run, session, tile_seconds, tiles, timed

from tilewright.tuner.candidate import Candidate
from tilewright.tuner.errors import UnknownStrategy
from tilewright.tuner.outcome import Outcome
from tilewright.tuner.strategies import STRATEGIES, SearchStrategy, load_strategy
from tilewright.tuner.strategies.evolutionary import Evolutionary
from tilewright.tuner.strategies.random import Random

OPTIMUM = tile_seconds({"steps": {"sketch": "s1", "k0": 4, "k1": 16, "k2": 8, "k3": 32, "k4": 2, "k5": 64}})


def best_of(strategy: SearchStrategy, seed: int, trials: int = 64) -> float:
    """The best time found, over the best there is."""
    searched = session(tiles(), strategy, trials, seed=seed)
    run(searched)
    assert searched.best is not None
    assert searched.best.outcome.seconds is not None
    return searched.best.outcome.seconds / OPTIMUM


def test_an_unknown_strategy_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnknownStrategy) as refused:
        load_strategy("luck")
    assert (
        str(refused.value)
        == "unknown search strategy 'luck'; known: annealing, evolutionary, grid, guided, local, random"
    )


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_every_strategy_of_the_table_loads_and_says_its_name(name: str) -> None:
    assert load_strategy(name).describe().split(" ")[0] == name


def test_strategies_and_learning_are_loaded_only_when_they_are_named() -> None:
    loaded = "[m for m in sys.modules if m.split('.')[0] in ('xgboost', 'sklearn') or 'evolutionary' in m]"
    code = f"import sys, tilewright.tuner.session; print({loaded})"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == "[]\n"


def test_guided_search_comes_twice_as_near_to_the_optimum_as_random_search() -> None:
    guided = np.median([best_of(load_strategy("evolutionary"), seed) for seed in range(8)])
    blind = np.median([best_of(Random(), seed) for seed in range(8)])
    assert guided - 1 < (blind - 1) / 2


def test_guided_search_comes_within_ten_percent_in_128_trials() -> None:
    assert np.median([best_of(load_strategy("evolutionary"), seed, 128) for seed in range(4)]) < 1.1


def test_guided_search_survives_that_half_of_all_trials_fail() -> None:
    searched = session(tiles(), load_strategy("evolutionary"), 128)
    run(searched, lambda c: timed(c) if c.number % 2 else Outcome(failure="run_timeout"))
    assert searched.best is not None
    assert searched.best.outcome.seconds is not None
    assert searched.best.outcome.seconds < 1.25 * OPTIMUM


def test_guided_search_learns_to_avoid_what_fails() -> None:
    def fails_in_s1(candidate: Candidate) -> Outcome:
        return timed(candidate) if candidate.sketch == "s0" else Outcome(failure="run_error")

    searched = session(tiles(), load_strategy("evolutionary"), 96)
    run(searched, fails_in_s1)
    late = [candidate.sketch for candidate in searched.candidates[48:]]
    assert late.count("s1") < len(late) / 4


def test_a_share_of_guided_proposals_stays_random() -> None:
    assert best_of(Evolutionary(epsilon=1.0), 0) > best_of(Evolutionary(epsilon=0.0), 0)


def test_defaults_are_measured_first_and_random_points_beside_them() -> None:
    row = (1, 2, 4, 8, 16, 32)
    searched = session(tiles(), load_strategy("evolutionary"), 64, defaults=[("s1", row), ("s0", row)] * 4)
    batch = searched.ask()
    assert [(c.sketch, c.row) for c in batch[:2]] == [("s1", row), ("s0", row)]
    assert all(c.row != row for c in batch[2:])


def test_random_search_takes_no_defaults() -> None:
    row = (1, 2, 4, 8, 16, 32)
    plain, told = session(tiles(), Random(), 8), session(tiles(), Random(), 8, defaults=[("s1", row)])
    assert [c.key for c in told.ask()] == [c.key for c in plain.ask()]
