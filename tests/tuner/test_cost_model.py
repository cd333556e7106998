"""Cost models."""

from __future__ import annotations

import builtins
import importlib.util
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from synthetic import run, session, tiles

from tilewright.tuner import cost_model
from tilewright.tuner.candidate import Candidate
from tilewright.tuner.cost_model import (
    OBJECTIVES,
    CostModel,
    KernelRidge,
    Learner,
    Objective,
    SchemaMismatch,
    TrainingSet,
    XGBoost,
    available_model,
    training_set,
)
from tilewright.tuner.outcome import Outcome, Trial
from tilewright.tuner.prior import Prior
from tilewright.tuner.strategies.evolutionary import Evolutionary

MODELS = pytest.mark.parametrize(
    "model", [XGBoost, lambda: KernelRidge("a test")], ids=["xgboost", "kernel ridge"]
)
Make = Callable[[], CostModel]


def rows(n: int, seed: int = 0) -> TrainingSet:
    """Features of which three matter, and scores in [0, 1]."""
    features = (2.0 ** np.random.default_rng(seed).integers(0, 10, (n, 8))).astype(np.float32)
    logs = np.log2(features[:, :3])
    return TrainingSet.plain(features, (1 / (1 + ((logs - 4) ** 2).sum(axis=1) / 20)).astype(np.float32))


def trial(number: int, outcome: Outcome, features: np.ndarray | None) -> Trial:
    return Trial(Candidate(number, number // 8, "s", None, "{}", f"{number:064d}", features), outcome)


@MODELS
def test_a_model_ranks_what_it_has_not_seen(model: Make) -> None:
    fitted = model()
    fitted.update(rows(256))
    unseen = rows(512, seed=1)
    predicted = fitted.predict(unseen.features)
    ranks = [np.argsort(np.argsort(values)) for values in (predicted, unseen.scores)]
    assert np.corrcoef(*ranks)[0, 1] > 0.7


@MODELS
def test_a_model_trained_on_the_same_predicts_the_same(model: Make) -> None:
    one, other = model(), model()
    one.update(rows(64))
    other.update(rows(64, seed=1))
    other.update(rows(64))
    features = rows(128, seed=2).features
    assert one.predict(features).tolist() == other.predict(features).tolist()


@MODELS
def test_a_model_of_a_single_row_predicts_its_score(model: Make) -> None:
    fitted = model()
    fitted.update(TrainingSet.plain(np.ones((1, 5), dtype=np.float32), np.array([1.0], dtype=np.float32)))
    assert fitted.predict(np.ones((3, 5), dtype=np.float32)) == pytest.approx([1.0] * 3, abs=0.1)


def test_xgboost_says_its_version() -> None:
    import xgboost

    assert available_model().name == f"xgboost {xgboost.__version__}"


def without_xgboost(monkeypatch: pytest.MonkeyPatch) -> None:
    find, load = importlib.util.find_spec, builtins.__import__

    def refuse(name: str, *arguments: Any, **more: Any) -> Any:
        if name.startswith("xgboost"):
            raise ModuleNotFoundError(name)
        return load(name, *arguments, **more)

    monkeypatch.setattr(cost_model, "find_spec", lambda name: None if name == "xgboost" else find(name))
    monkeypatch.setattr(builtins, "__import__", refuse)


def test_a_search_without_xgboost_runs_with_another_model_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    without_xgboost(monkeypatch)
    strategy = Evolutionary(population=256, generations=2)
    searched = session(tiles(), strategy, 40)
    run(searched)
    assert (searched.told, strategy.describe()) == (
        40,
        "evolutionary (cost model: kernel ridge (xgboost is not installed))",
    )


def test_a_score_is_the_best_time_over_the_trials_own() -> None:
    features = np.ones(3, dtype=np.float32)
    outcomes = [Outcome(seconds=2.0), Outcome(failure="run_error"), Outcome(seconds=8.0, censored=True)]
    taught = training_set([trial(n, outcome, features) for n, outcome in enumerate(outcomes)])
    assert (taught.scores.tolist(), taught.failed.tolist()) == ([1.0, 0.0, 0.25], [False, True, False])


def test_trials_of_unknown_features_train_nothing() -> None:
    known = trial(1, Outcome(seconds=4.0), np.full(3, 7.0, dtype=np.float32))
    taught = training_set([trial(0, Outcome(seconds=1.0), None), known])
    assert (taught.features.tolist(), taught.scores.tolist()) == ([[7.0, 7.0, 7.0]], [1.0])


def test_a_long_history_is_cut_to_its_fastest_and_newest() -> None:
    history = [trial(n, Outcome(seconds=1.0 + n % 100), np.full(1, n, dtype=np.float32)) for n in range(3000)]
    kept = training_set(history).features[:, 0].astype(int).tolist()
    assert (len(kept), kept[-512:], max(n % 100 for n in kept[:512])) == (1024, list(range(2488, 3000)), 20)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_objective_ranks_what_it_has_not_seen(objective: Objective) -> None:
    fitted, unseen = XGBoost(objective), rows(512, seed=1)
    fitted.update(rows(256))
    ranks = [np.argsort(np.argsort(values)) for values in (fitted.predict(unseen.features), unseen.scores)]
    assert np.corrcoef(*ranks)[0, 1] > 0.7


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_failures_do_not_change_what_is_said_of_the_fast(objective: Objective) -> None:
    """Rows of another region fail; the order among the others stays."""
    good, unseen = rows(256), rows(256, seed=1)
    bad = np.full((64, 8), 2.0**20, dtype=np.float32)
    both = TrainingSet.plain(
        np.concatenate([good.features, bad]), np.concatenate([good.scores, np.zeros(64, dtype=np.float32)])
    )
    alone, beside = XGBoost(objective), XGBoost(objective)
    alone.update(good)
    beside.update(both)
    one, other = (np.argsort(np.argsort(model.predict(unseen.features))) for model in (alone, beside))
    assert np.corrcoef(one, other)[0, 1] > 0.95
    assert beside.predict(bad).max() < np.quantile(beside.predict(unseen.features), 0.2)


def test_members_agree_where_they_were_taught_and_differ_elsewhere() -> None:
    model = XGBoost(members=4)
    near = rows(48)
    model.update(near)
    far = rows(512, seed=1).features
    assert model.predict_each(far).shape == (4, 512)
    assert model.predict_each(near.features).std(axis=0).mean() < model.predict_each(far).std(axis=0).mean()


@MODELS
def test_the_mean_of_the_members_is_what_is_predicted(model: Make) -> None:
    fitted, unseen = model(), rows(64, seed=1).features
    fitted.update(rows(64))
    assert fitted.predict(unseen) == pytest.approx(fitted.predict_each(unseen).mean(axis=0))


def test_a_kernel_ridge_of_many_rows_keeps_those_of_weight() -> None:
    few, many = rows(100), rows(3000, seed=1)
    weights = np.concatenate([np.full(3000, 1e-4, np.float32), np.ones(100, np.float32)])
    both = TrainingSet(
        np.concatenate([many.features, few.features]),
        np.concatenate([many.scores, few.scores]),
        weights,
        np.repeat([0, 1], [3000, 100]),
        np.zeros(3100, dtype=bool),
        np.zeros(3100, dtype=np.float32),
    )
    fitted = KernelRidge("a test")
    fitted.update(both)
    assert np.abs(fitted.predict(few.features) - few.scores).mean() < 0.03


def history(count: int, seed: int = 0) -> list[Trial]:
    known = rows(count, seed)
    return [trial(n, Outcome(seconds=float(1 / known.scores[n])), known.features[n]) for n in range(count)]


@MODELS
def test_a_model_that_learns_on_top_is_a_function_of_the_history_alone(model: Make) -> None:
    """One learner follows the search, the other one begins at its end."""
    follower, late = Learner(model), Learner(model)
    trials, unseen = history(330), rows(64, seed=1).features
    for count in (100, 200, 240, 300, 330):
        followed = follower.taught(trials[:count])
    fresh = late.taught(trials)
    assert followed is not None and fresh is not None
    assert followed.predict(unseen).tolist() == fresh.predict(unseen).tolist()


def test_a_model_that_learns_on_top_ranks_like_one_taught_anew() -> None:
    trials, unseen = history(230), rows(512, seed=1)
    on_top, anew = Learner(XGBoost).taught(trials), XGBoost()
    anew.update(training_set(trials))
    assert on_top is not None

    def quality(model: CostModel) -> float:
        ranks = [np.argsort(np.argsort(v)) for v in (model.predict(unseen.features), unseen.scores)]
        return float(np.corrcoef(*ranks)[0, 1])

    assert quality(on_top) > quality(anew) - 0.03


def test_what_is_learned_on_top_takes_as_many_rounds_as_there_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    import xgboost

    rounds: list[int] = []
    train = xgboost.train
    monkeypatch.setattr(xgboost, "train", lambda p, d, n, **more: rounds.append(n) or train(p, d, n, **more))
    learner, trials = Learner(XGBoost), history(240)
    for count in (192, 200, 208, 239, 240):
        learner.taught(trials[:count])
    assert rounds == [50, 2, 4, 10, 50]


def test_nothing_is_taught_before_a_trial_has_a_time() -> None:
    failed = trial(0, Outcome(failure="run_error"), np.ones(3, dtype=np.float32))
    assert Learner(XGBoost).taught([failed]) is None


def test_what_a_worker_lost_teaches_nothing() -> None:
    lost = trial(0, Outcome(failure="worker_lost"), np.ones(8, dtype=np.float32))
    assert len(training_set([lost, *history(3)])) == 3


def prior(count: int, columns: int = 8) -> Prior:
    known = rows(count, seed=5)
    groups = np.arange(count, dtype=np.int64) % 3
    return Prior(known.features[:, :columns], known.scores, groups, "the store", 7)


def test_a_prior_is_rows_of_groups_of_their_own_that_weigh_less_as_trials_come_in() -> None:
    few, many = (training_set(history(count), prior(30)) for count in (4, 52))
    assert (few.groups[:30].tolist(), set(few.groups[30:].tolist())) == (
        sorted(n % 3 for n in range(30)),
        {3},
    )
    assert few.weights[30:].tolist() == [1.0] * 4
    assert few.weights[0] == pytest.approx(4 * many.weights[0])


def test_a_search_with_a_prior_has_a_model_before_its_first_trial() -> None:
    model = Learner(XGBoost).taught([], prior(200))
    assert model is not None
    unseen = rows(512, seed=1)
    ranks = [np.argsort(np.argsort(values)) for values in (model.predict(unseen.features), unseen.scores)]
    assert np.corrcoef(*ranks)[0, 1] > 0.7


def test_a_prior_with_other_columns_is_refused_by_name() -> None:
    with pytest.raises(SchemaMismatch) as refused:
        training_set(history(4), prior(30, columns=5))
    assert str(refused.value) == (
        "the features of the store are of schema 7, 5 columns; those of this search are 8 columns"
    )


def test_a_session_refuses_a_prior_of_another_schema_and_names_both() -> None:
    with pytest.raises(SchemaMismatch) as refused:
        session(tiles(), Evolutionary(), 8, prior=prior(30), feature_schema=8)
    assert str(refused.value) == (
        "the features of the store are of schema 7; those of this search are of schema 8"
    )


@pytest.mark.parametrize("collects", [True, False])
def test_loading_xgboost_leaves_the_collector_as_it_was(collects: bool) -> None:
    code = "import gc; from tilewright.tuner.cost_model import XGBoost"
    off = "" if collects else "gc.disable(); "
    code += f"; {off}XGBoost.load(); print(gc.isenabled())"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == f"{collects}\n"
