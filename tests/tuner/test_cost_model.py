"""Cost models."""

from __future__ import annotations

import builtins
import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from synthetic import run, session, tiles

from tilewright.tuner import cost_model
from tilewright.tuner.candidate import Candidate
from tilewright.tuner.cost_model import (
    CostModel,
    KernelRidge,
    TrainingSet,
    XGBoost,
    available_model,
    training_set,
)
from tilewright.tuner.outcome import Outcome, Trial
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
