"""Whether a cost model can be believed, by the trials that it predicted before they were measured."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from synthetic import run, session, tiles, timed

from tilewright.tuner.candidate import Candidate, Features
from tilewright.tuner.cost_model import CostModel, KernelRidge, Scores, TrainingSet, quality
from tilewright.tuner.cost_model.quality import NumpyMetrics, ScikitLearnMetrics, available_metrics, pairs
from tilewright.tuner.model_quality import ModelQuality, RoundQuality, quality_of, trusted
from tilewright.tuner.model_watch import ModelWatch
from tilewright.tuner.outcome import Outcome, Trial
from tilewright.tuner.strategies.evolutionary import Evolutionary

FAILED = Outcome(failure="build_error")
RIGHT, WRONG = [0.9, 0.7, 0.5, 0.3], [0.3, 0.5, 0.7, 0.9]


def trials(
    predicted: Sequence[float | None], outcomes: Sequence[float | Outcome], batch: int = 0, first: int = 0
) -> list[Trial]:
    return [
        Trial(
            Candidate(first + n, batch, "s", None, "{}", str(first + n), None, score),
            outcome if isinstance(outcome, Outcome) else Outcome(seconds=outcome),
        )
        for n, (score, outcome) in enumerate(zip(predicted, outcomes, strict=True))
    ]


def rounds(*predicted: Sequence[float]) -> list[Trial]:
    """Batches of four trials that took 1, 2, 3 and 4 seconds."""
    return [
        trial
        for batch, scores in enumerate(predicted)
        for trial in trials(scores, [1.0, 2.0, 3.0, 4.0], batch, 4 * batch)
    ]


def test_a_model_that_ranks_all_trials_right_is_perfect() -> None:
    assert quality_of(rounds(RIGHT)) == ModelQuality(
        trials=4,
        rank_correlation=pytest.approx(1.0),
        pairwise_accuracy=1.0,
        top_recall=1.0,
        trusted=True,
        distrusted_rounds=0,
        metrics="NumPy (scikit-learn is not installed)",
        rounds=(RoundQuality(0, 4, pytest.approx(1.0), 1.0, 1.0, True),),
    )


def test_each_trial_is_compared_with_those_of_its_own_round() -> None:
    # The scores of the second round are all below those of the first: another model gave them.
    later = [score - 10 for score in RIGHT]
    assert quality_of(rounds(RIGHT, later)).rank_correlation == pytest.approx(1.0)


def test_rounds_count_by_what_they_tell() -> None:
    found = quality_of(trials([2, 1], [1, 2]) + trials(WRONG, [1, 2, 3, 4], batch=1, first=2))
    assert (found.rank_correlation, found.pairwise_accuracy, found.top_recall) == (
        pytest.approx((1 - 3) / 4),
        pytest.approx(2 / 14),
        pytest.approx(1 / 2),
    )


def test_trials_without_a_prediction_and_trials_that_were_lost_count_for_nothing() -> None:
    lost = [Outcome(failure="worker_lost"), Outcome(failure="cancelled")]
    found = quality_of(trials([None, 0.9, 0.8, 0.7, 0.6], [9.0, *lost, 1.0, 2.0]))
    assert (found.trials, found.pairwise_accuracy) == (2, 1.0)


@pytest.mark.parametrize("predicted", [[], [0.5], [None, None, 0.5]])
def test_fewer_than_two_predictions_tell_nothing(predicted: list[float | None]) -> None:
    assert quality_of(trials(predicted, [1.0] * len(predicted))) == ModelQuality()


def test_a_failure_is_slower_than_all_that_ran() -> None:
    assert quality_of(trials([0.9, 0.1], [FAILED, 5.0])).pairwise_accuracy == 0.0


def test_a_bound_is_compared_with_what_was_faster_and_with_nothing_else() -> None:
    bound = Outcome(seconds=2.0, censored=True)
    scores, seconds, censored = np.array([0.1, 0.5, 0.9]), np.array([1.0, 2.0, 3.0]), np.array([0, 1, 0]) > 0
    truth, said = pairs(scores, seconds, censored)
    assert (len(truth), quality_of(trials([0.1, 0.5, 0.9], [1.0, bound, 3.0])).pairwise_accuracy) == (4, 0.0)
    assert not (truth == said).any()


def test_equal_scores_are_half_right() -> None:
    assert quality_of(trials([0.5, 0.5], [1.0, 2.0])).pairwise_accuracy == 0.5


def test_equal_times_tell_nothing() -> None:
    found = quality_of(trials(RIGHT, [1.0] * 4))
    assert (found.rank_correlation, found.pairwise_accuracy, found.trusted) == (None, None, True)


def test_a_round_in_which_all_failed_has_no_fastest() -> None:
    assert quality_of(trials(RIGHT, [FAILED] * 4)).top_recall is None


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.integers(0, 6).map(lambda n: n / 4), st.sampled_from([1.0, 1.5, 2.0, 3.0, 7.0, float("inf")])
        ),
        max_size=12,
    )
)
def test_numpys_metrics_are_those_of_scikit_learn(rows: list[tuple[float, float]]) -> None:
    history = trials([score for score, _ in rows], [FAILED if s == float("inf") else s for _, s in rows])
    ours, library = quality_of(history, NumpyMetrics()), quality_of(history, ScikitLearnMetrics())
    assert [ours.rank_correlation, ours.pairwise_accuracy, ours.top_recall] == [
        value if value is None else pytest.approx(value)
        for value in (library.rank_correlation, library.pairwise_accuracy, library.top_recall)
    ]


def test_the_metrics_say_which_library_computes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    import sklearn

    assert available_metrics().name == f"scikit-learn {sklearn.__version__}"
    monkeypatch.setattr(quality, "find_spec", lambda name: None)
    assert available_metrics().name == "NumPy (scikit-learn is not installed)"


def test_a_model_that_ranks_backwards_is_distrusted_once_that_is_no_chance() -> None:
    found = [trusted(rounds(*[WRONG] * n)) for n in range(4)]
    assert found == [True, True, False, False]


def test_a_model_no_better_than_chance_keeps_its_trust() -> None:
    assert trusted(rounds(RIGHT, WRONG, WRONG, RIGHT, [0.5, 0.9, 0.1, 0.3]))


def test_a_model_that_has_learned_is_trusted_again() -> None:
    assert not trusted(rounds(*[WRONG] * 4))
    assert trusted(rounds(*[WRONG] * 4, *[RIGHT] * 3))


def test_trust_after_each_round_is_that_of_the_history_up_to_it() -> None:
    rng = np.random.default_rng(1)
    history = rounds(*[list(rng.permutation(WRONG) if n % 3 else WRONG) for n in range(24)])
    found = [each.trusted for each in quality_of(history).rounds]
    assert found == [trusted(history[: 4 * n + 4]) for n in range(24)]
    assert set(found) == {True, False}


@dataclass
class Contrary:
    """Ranks backwards, on purpose."""

    model: CostModel = field(default_factory=lambda: KernelRidge(reason="backwards"))
    name: str = "contrary"

    def update(self, training: TrainingSet) -> None:
        self.model.update(training)

    def extend(self, training: TrainingSet, new: int) -> None:
        self.model.extend(training, new)

    def predict_each(self, features: Features) -> NDArray[np.float32]:
        return np.asarray(-self.model.predict_each(features), dtype=np.float32)

    def predict(self, features: Features) -> Scores:
        return np.asarray(-self.model.predict(features), dtype=np.float32)


def small(model: type) -> Evolutionary:
    return Evolutionary(model, population=256, generations=2, epsilon=0.25)


def test_a_search_does_without_a_model_that_is_worse_than_chance_and_says_so() -> None:
    searched = session(tiles(), small(Contrary), 64)
    run(searched)
    quality = quality_of(searched.history)
    rank = f"{quality.rank_correlation:+.2f}"
    distrusted = [each.batch for each in quality.rounds if not each.trusted]
    assert searched.conclusion == (
        "completed",
        "all 64 trials of the budget are done; the cost model ranked held-out trials worse than chance and "
        f"was not trusted after {len(distrusted)} rounds of {len(quality.rounds)} (rank correlation {rank} "
        f"over {quality.trials} of them)",
    )
    # What was known of batch n - 2 decides of batch n.
    without = {n + 2 for n in distrusted}
    assert {c.origin for c in searched.candidates if c.batch in without} == {"random"}
    assert {c.origin for c in searched.candidates if c.batch == distrusted[0]} >= {"model"}


def test_a_search_finds_more_without_such_a_model_than_by_believing_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def found() -> float:
        best = []
        for seed in range(3):
            searched = session(tiles(), small(Contrary), 64, seed=seed)
            run(searched)
            assert searched.best is not None and searched.best.outcome.seconds is not None
            best.append(searched.best.outcome.seconds)
        return float(np.mean(best))

    honest = found()
    monkeypatch.setattr(
        sys.modules["tilewright.tuner.strategies.evolutionary"], "trusted", lambda history: True
    )
    assert honest < found()


def test_a_search_with_an_honest_model_says_nothing_of_it() -> None:
    searched = session(tiles(), small(lambda: KernelRidge(reason="small")), 48)
    run(searched)
    quality = quality_of(searched.history)
    assert (searched.conclusion[1], quality.trusted) == ("all 48 trials of the budget are done", True)
    assert quality.rank_correlation is not None and quality.rank_correlation > 0


@pytest.mark.parametrize("order", range(3))
def test_batches_are_looked_at_once_and_in_order_whatever_order_results_arrive_in(order: int) -> None:
    searched = session(tiles(), small(lambda: KernelRidge(reason="small")), 45)
    watch, seen = ModelWatch(searched), list[RoundQuality]()
    rng = np.random.default_rng(order)
    while not searched.finished:
        while searched.ready:
            searched.ask()
        for n in rng.permutation(len(searched.outstanding))[:3]:
            candidate = searched.outstanding[min(n, len(searched.outstanding) - 1)]
            searched.tell(candidate.number, timed(candidate))
            seen += watch.fresh()
    assert tuple(seen) == watch.quality.rounds == quality_of(searched.history, available_metrics()).rounds


def test_what_is_left_of_a_search_that_ends_early_is_looked_at_in_the_end() -> None:
    searched = session(tiles(), small(lambda: KernelRidge(reason="small")), 45)
    watch = ModelWatch(searched)
    for _ in range(6):
        batch = searched.ask()
        for candidate in batch[:2] if batch[0].batch == 5 else batch:
            searched.tell(candidate.number, timed(candidate))
    seen = len(list(watch.fresh())), len(list(watch.fresh(last=True)))
    assert (seen[1], watch.quality) == (1, quality_of(searched.history, available_metrics()))
