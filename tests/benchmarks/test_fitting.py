import numpy as np
import pytest
from bench.fitting import fitted, judged, refined


def test_coefficients_that_made_the_times_are_found_again() -> None:
    rng = np.random.default_rng(0)
    table = rng.lognormal(0.0, 1.0, (300, 4))
    true = np.array([2.0, 0.5, 1.0, 4.0])
    groups = np.array(["a", "b", "c"] * 100)
    found = fitted(table, table @ true, groups, np.ones(4))
    assert found == pytest.approx(true, rel=0.1)


def test_a_coefficient_that_no_time_tells_stays_as_it_was() -> None:
    rng = np.random.default_rng(0)
    table = rng.lognormal(0.0, 1.0, (100, 3))
    table[:, 1] = 0.0
    found = fitted(table, table @ np.array([1.0, 9.0, 3.0]), np.array(["a"] * 100), np.array([1.0, 7.0, 1.0]))
    assert found[1] == pytest.approx(7.0)


def test_the_chosen_config_becomes_fast_though_slow_ones_fit_worse() -> None:
    # The first term tells which config is fast, the second one how slow the slow ones are.
    table = np.array([[1.0, 4.0], [2.0, 1.0], [8.0, 2.0]])
    times, groups = np.array([1.0, 2.0, 30.0]), np.array(["a"] * 3)
    start = np.array([1.0, 1.0])
    assert judged(table @ start, times)[1] == 2.0
    assert judged(table @ refined(table, times, groups, start), times)[1] == 1.0


def test_an_estimate_is_judged_by_its_ranks_and_by_what_it_chose() -> None:
    times = np.array([1.0, 2.0, 3.0, 4.0])
    assert judged(times * 5, times) == (pytest.approx(1.0), 1.0)
    assert judged(-times, times) == (pytest.approx(-1.0), 4.0)
