"""What is proposed."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from synthetic import run, session, tile_seconds, tiles, timed

from tilewright.tuner.errors import UnknownStrategy
from tilewright.tuner.strategies import STRATEGIES, SearchStrategy, load_strategy
from tilewright.tuner.strategies.evolutionary import Evolutionary
from tilewright.tuner.strategies.random import Random

OPTIMUM = tile_seconds({"steps": {"sketch": "s1", "k0": 4, "k1": 16, "k2": 8, "k3": 32, "k4": 2, "k5": 64}})


def best_of(strategy: SearchStrategy, seed: int, trials: int = 64) -> float:
    searched = session(tiles(), strategy, trials, seed=seed)
    run(searched)
    assert searched.best is not None
    assert searched.best.outcome.seconds is not None
    return searched.best.outcome.seconds / OPTIMUM


def test_an_unknown_strategy_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnknownStrategy) as refused:
        load_strategy("annealing")
    assert str(refused.value) == "unknown search strategy 'annealing'; known: evolutionary, random"


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_every_strategy_of_the_table_loads_and_says_its_name(name: str) -> None:
    assert load_strategy(name).describe().split(" ")[0] == name


def test_a_strategy_is_loaded_only_when_it_is_named() -> None:
    import subprocess

    code = "import sys, tilewright.tuner.session; print([m for m in sys.modules if 'xgboost' in m or 'evol' in m])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == "[]\n"


def test_guided_search_is_within_three_percent_where_random_search_is_far_off() -> None:
    guided = np.median([best_of(load_strategy("evolutionary"), seed) for seed in range(8)])
    blind = np.median([best_of(Random(), seed) for seed in range(8)])
    assert (guided < 1.03, blind > 1.2) == (True, True)


def test_guided_search_beats_random_search_for_every_seed() -> None:
    seeds = range(8)
    assert [
        seed for seed in seeds if best_of(load_strategy("evolutionary"), seed) >= best_of(Random(), seed)
    ] == []


def test_guided_search_survives_that_half_of_all_trials_fail() -> None:
    from tilewright.tuner.outcome import Outcome

    searched = session(tiles(), load_strategy("evolutionary"), 96)
    run(searched, lambda c: timed(c) if c.number % 2 else Outcome(failure="run_timeout"))
    assert searched.best is not None
    assert searched.best.outcome.seconds is not None
    assert searched.best.outcome.seconds < 1.1 * OPTIMUM


def test_a_share_of_guided_proposals_stays_random() -> None:
    believer, explorer = Evolutionary(epsilon=0.0), Evolutionary(epsilon=1.0)
    assert best_of(explorer, 0) > 1.1 > best_of(believer, 0)
