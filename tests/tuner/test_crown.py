"""The final rounds."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.tuner.candidate import Candidate
from tilewright.tuner.crown import Crowned, Crowning
from tilewright.tuner.outcome import Outcome, Trial


def trial(number: int, seconds: float, **more: bool) -> Trial:
    return Trial(Candidate(number, 0, "s", None, "{}", str(number), None), Outcome(seconds=seconds, **more))


def refuse(again: Trial) -> Outcome:
    raise AssertionError(f"trial {again.candidate.number} was measured again")


def test_contenders_are_the_fastest_few_within_a_few_percent() -> None:
    history = [trial(n, seconds) for n, seconds in enumerate([1.2, 1.03, 1.0, 1.04, 1.049, 1.06])]
    assert [c.candidate.number for c in Crowning().contenders(history)] == [2, 1, 3]


def test_a_censored_trial_and_a_failure_are_no_contenders() -> None:
    failed = Trial(trial(1, 1.0).candidate, Outcome(failure="run_error"))
    assert Crowning().contenders([trial(0, 1.0, censored=True), failed, trial(2, 5.0)]) == [trial_2()]


def trial_2() -> object:
    class Same:
        def __eq__(self, other: object) -> bool:
            return isinstance(other, Trial) and other.candidate.number == 2

    return Same()


def test_without_a_second_contender_nothing_is_measured_again() -> None:
    crowned = Crowning().crown([trial(0, 1.0), trial(1, 2.0)], refuse)
    assert crowned is not None
    assert (crowned.winner.candidate.number, crowned.seconds, crowned.times) == (0, 1.0, {})


def test_without_any_time_nothing_is_crowned() -> None:
    assert Crowning().crown([], refuse) is None


def test_the_medians_of_the_final_rounds_decide_and_not_the_luckiest_reading() -> None:
    truth = {0: 1.02, 1: 1.0}
    crowned = Crowning().crown(
        [trial(0, 0.97), trial(1, 1.0)], lambda t: Outcome(seconds=truth[t.candidate.number])
    )
    assert crowned is not None
    assert (crowned.winner.candidate.number, crowned.seconds) == (1, 1.0)


def test_contenders_are_measured_in_turn_in_alternating_order() -> None:
    order: list[int] = []

    def measure(again: Trial) -> Outcome:
        order.append(again.candidate.number)
        return Outcome(seconds=1.0)

    Crowning(rounds=3).crown([trial(0, 1.0), trial(1, 1.01), trial(2, 1.02)], measure)
    assert order == [0, 1, 2, 2, 1, 0, 0, 1, 2]


def test_a_contender_that_is_clearly_slower_drops_out_after_two_rounds() -> None:
    order: list[int] = []

    def measure(again: Trial) -> Outcome:
        order.append(again.candidate.number)
        return Outcome(seconds=1.0 + again.candidate.number // 2)

    Crowning().crown([trial(0, 1.0), trial(1, 1.01), trial(2, 1.02)], measure)
    assert (order.count(0), order.count(1), order.count(2)) == (5, 5, 2)


def test_a_contender_that_fails_now_is_out() -> None:
    def measure(again: Trial) -> Outcome:
        return Outcome(failure="wrong_output") if again.candidate.number == 0 else Outcome(seconds=1.1)

    crowned = Crowning().crown([trial(0, 1.0), trial(1, 1.01)], measure)
    assert crowned is not None
    assert crowned.winner.candidate.number == 1


def test_where_every_contender_fails_now_the_one_of_the_search_stands() -> None:
    crowned = Crowning().crown([trial(0, 1.0), trial(1, 1.01)], lambda again: Outcome(failure="worker_lost"))
    assert crowned is not None
    assert (crowned.winner.candidate.number, crowned.times) == (0, {})


@pytest.mark.parametrize("noise", [0.02, 0.05])
def test_the_true_best_is_crowned_where_the_luckiest_reading_often_is_another(noise: float) -> None:
    """100 candidates, the best 3 % ahead of the second; a reading is the least of three noisy samples."""
    right = lucky = 0
    for seed in range(50):
        rng = np.random.default_rng(seed)
        truth = np.concatenate([[1.0], 1.03 + np.sort(rng.exponential(0.3, 99))])

        def reading(number: int, rng: np.random.Generator = rng, truth: np.ndarray = truth) -> float:
            return float(truth[number] * (1 + np.abs(rng.normal(0, noise, 3)).min()))

        history = [trial(n, reading(n)) for n in range(100)]
        crowned = Crowning().crown(history, lambda again: Outcome(seconds=reading(again.candidate.number)))
        assert isinstance(crowned, Crowned)
        right += crowned.winner.candidate.number == 0
        lucky += min(history, key=lambda t: t.outcome.seconds or 0.0).candidate.number == 0
    assert (right >= 45, right >= lucky) == (True, True)
