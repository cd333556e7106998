"""A cost model that begins with what rules say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from synthetic import run, session, tiles

from tilewright.compiler.space import estimated_cycles, space_of
from tilewright.compiler.space.default import estimate as cycles
from tilewright.compiler.target import Target
from tilewright.compiler.topi import create
from tilewright.tuner.candidate import Candidate
from tilewright.tuner.cost_model import Corrected, Learner, TrainingSet, XGBoost, training_set
from tilewright.tuner.cost_model.corrected import share_of
from tilewright.tuner.estimate import Estimate
from tilewright.tuner.opening import open_task
from tilewright.tuner.outcome import Outcome, Trial
from tilewright.tuner.prior import Prior
from tilewright.tuner.strategies.guided import Guided


def features(count: int, seed: int, structure: int = 0) -> np.ndarray:
    rows = (2.0 ** np.random.default_rng(seed).integers(0, 8, (count, 6))).astype(np.float32)
    rows[:, 5] = structure
    return rows


def costs(rows: np.ndarray) -> np.ndarray:
    """A bowl over the first three columns, in which one structure is worth half of the other."""
    logs = np.log2(rows[:, :3].astype(np.float64))
    return (10 + ((logs - 4) ** 2).sum(axis=1)) * (1 + rows[:, 5])


def seconds(rows: np.ndarray) -> np.ndarray:
    """The costs, and what the rules do not know: the fourth column."""
    return costs(rows) * (1 + 0.05 * np.log2(rows[:, 3]))


def trials(rows: np.ndarray) -> list[Trial]:
    return [
        Trial(Candidate(n, n // 8, "s", None, "{}", f"{n:064d}", row), Outcome(seconds=float(took)))
        for n, (row, took) in enumerate(zip(rows, seconds(rows), strict=True))
    ]


def estimate(of: np.ndarray) -> Estimate:
    found = Estimate.of(costs, list(of))
    assert found is not None
    return found


def rank_correlation(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.corrcoef(*(np.argsort(np.argsort(values)) for values in (one, other)))[0, 1])


def test_the_rules_own_choice_has_the_score_one_and_twice_its_cost_half_of_it() -> None:
    chosen = np.array([[16, 16, 16, 1, 1, 0], [16, 16, 16, 1, 1, 1]], dtype=np.float32)
    assert estimate(chosen).scores(chosen).tolist() == [1.0, 0.5]


def test_rows_of_other_workloads_are_compared_within_their_workload() -> None:
    rows = np.array([[16, 16, 16, 1, 1, 0], [16, 16, 16, 1, 1, 1], [16, 16, 16, 1, 1, 1]], dtype=np.float32)
    assert estimate(rows).scores_within(rows, np.array([7, 7, 9])).tolist() == [1.0, 0.5, 1.0]


def test_without_rules_or_without_what_they_choose_there_is_no_estimate() -> None:
    assert (Estimate.of(None, list(features(3, 0))), Estimate.of(costs, [])) == (None, None)


def taught(foretold: list[float], scores: list[float]) -> TrainingSet:
    rows = np.zeros((len(scores), 2), dtype=np.float32)
    known = TrainingSet.plain(rows, np.array(scores, dtype=np.float32))
    return replace(known, foretold=np.array(foretold, dtype=np.float32))


def test_rules_are_believed_as_far_as_they_proved_true() -> None:
    said = [1.0, 0.8, 0.6, 0.4]
    shares = [
        share_of(taught(said, scores))
        for scores in ([1.0, 0.8, 0.6, 0.4], [1.0, 0.9, 0.8, 0.7], [0.9, 0.3, 0.3, 0.9], [0.4, 0.6, 0.8, 1.0])
    ]
    assert shares == pytest.approx([1.0, 0.5, 0.0, 0.0], abs=1e-6)


def test_rules_are_believed_where_they_have_said_nothing_that_differs() -> None:
    assert (share_of(taught([1.0], [1.0])), share_of(taught([0.7, 0.7], [1.0, 0.2]))) == (1.0, 1.0)


def test_a_structure_that_was_never_measured_is_ranked_as_the_rules_say() -> None:
    known, unseen = features(24, 0), features(256, 1, structure=1)
    alone = Learner(XGBoost).taught(trials(known))
    beside = Learner(XGBoost).taught(trials(known), estimate=estimate(known))
    assert alone is not None and beside is not None
    speeds = 1 / seconds(unseen)
    assert rank_correlation(alone.predict(unseen), speeds) < 0.85
    assert rank_correlation(alone.predict(unseen), speeds) < 0.7
    assert rank_correlation(beside.predict(unseen), speeds) > 0.85
    both = np.concatenate([known, unseen])
    assert beside.predict(unseen).mean() < beside.predict(known).mean()
    assert beside.predict_each(both).mean(axis=0).tolist() == beside.predict(both).tolist()


def test_a_structure_that_no_other_workload_has_is_ranked_as_the_rules_say() -> None:
    rows = features(128, 2)
    groups = np.arange(128, dtype=np.int64) % 3
    speeds = 1 / seconds(rows)
    prior = Prior(rows, (speeds / speeds.max()).astype(np.float32), groups)
    unseen = features(256, 1, structure=1)
    model = Learner(XGBoost).taught([], prior, estimate=estimate(unseen[:4]))
    assert model is not None
    assert rank_correlation(model.predict(unseen), 1 / seconds(unseen)) > 0.95


def test_what_the_rules_do_not_know_is_learned() -> None:
    known, unseen = features(128, 0), features(256, 1)
    beside = Learner(XGBoost).taught(trials(known), estimate=estimate(known))
    assert beside is not None
    rules = rank_correlation(1 / costs(unseen), 1 / seconds(unseen))
    assert rank_correlation(beside.predict(unseen), 1 / seconds(unseen)) > rules


def test_rules_that_are_wrong_do_not_mislead() -> None:
    known, unseen = features(128, 0), features(256, 1)
    upside_down = Estimate.of(lambda rows: 1 / costs(rows), list(known))
    alone, beside = (Learner(XGBoost).taught(trials(known), estimate=e) for e in (None, upside_down))
    assert alone is not None and beside is not None
    assert beside.predict(unseen).tolist() == alone.predict(unseen).tolist()


def test_what_is_learned_on_top_is_a_function_of_the_history_alone() -> None:
    rows, unseen = features(260, 3), features(64, 1)
    said = estimate(rows[:8])
    follower, late = Learner(XGBoost), Learner(XGBoost)
    for count in (100, 192, 200, 239, 260):
        followed = follower.taught(trials(rows[:count]), estimate=said)
    fresh = late.taught(trials(rows), estimate=said)
    assert isinstance(followed, Corrected) and fresh is not None
    assert followed.predict(unseen).tolist() == fresh.predict(unseen).tolist()


def test_a_model_that_learns_on_top_leaves_the_one_before_as_it_was() -> None:
    rows, unseen = features(239, 3), features(64, 1)
    learner, said = Learner(XGBoost), estimate(rows[:8])
    first = learner.taught(trials(rows[:200]), estimate=said)
    assert first is not None
    before = first.predict(unseen).tolist()
    learner.taught(trials(rows), estimate=said)
    assert first.predict(unseen).tolist() == before


def test_trials_are_taught_with_what_was_foretold_of_them() -> None:
    rows = features(6, 0)
    said = estimate(rows[:2])
    prior = Prior(features(4, 5), np.full(4, 0.5, np.float32), np.array([0, 0, 1, 1]))
    together = training_set(trials(rows), prior, said)
    assert together.foretold.tolist() == [
        *said.scores_within(prior.features, prior.groups).tolist(),
        *said.scores(rows).tolist(),
    ]
    assert training_set(trials(rows), prior).foretold.tolist() == [0.0] * 10


def test_before_anything_is_measured_a_search_with_a_prior_looks_around_what_rules_choose() -> None:
    of, row = tiles(1), (4, 8, 8, 32, 2, 64)
    columns = of.sketches[0].columns
    known = columns.random(64, np.random.default_rng(0))
    scores, groups = np.full(len(known), 0.5, np.float32), np.zeros(len(known), np.int64)
    prior = Prior(columns.features(known), scores, groups)
    strategy = Guided(shares=(("local", 1.0),), promising=0.0, early=0.0)
    searched = session(of, strategy, 8, defaults=[("s0", row)], prior=prior)
    default, *others = [*searched.ask(), *searched.ask()]
    beside = columns.neighbours(np.array([row])).tolist()
    assert default.row == row
    assert [list(c.row or ()) in beside for c in others] == [True] * 7


def test_a_search_with_rules_that_are_right_needs_fewer_trials() -> None:
    """The rules know all but one knob."""
    of = tiles()

    def foretell(rows: np.ndarray) -> np.ndarray:
        logs = np.log2(np.maximum(rows[:, :5].astype(np.float64), 1))
        return 10 + ((logs - (2, 4, 3, 5, 1)) ** 2).sum(axis=1)

    def best(**options: object) -> list[float]:
        found = []
        for seed in range(5):
            searched = session(of, Guided(), 24, seed=seed, defaults=[("s1", (8, 8, 8, 16, 1, 1))], **options)
            run(searched)
            assert searched.best is not None and searched.best.outcome.seconds is not None
            found.append(searched.best.outcome.seconds)
        return found

    assert np.mean(best(costs=foretell)) < 0.9 * np.mean(best())


def test_a_tasks_rules_choose_the_default_of_all_that_is_like_it() -> None:
    """The default has the lowest estimate of a sample of its sketch; so has its row of features."""
    task = open_task(
        create({"op": "matmul", "m": 96, "n": 80, "k": 64, "dtype": "float32"}),
        Target.parse("llvm -mcpu=x86-64-v3"),
    )
    assert task.costs is not None
    (name, row), *_ = task.defaults
    (sketch,) = (s for s in task.space.sketches if s.name == name)
    sample = sketch.columns.features(sketch.columns.random(64, np.random.default_rng(3)))
    mine = task.costs(sketch.columns.features(np.array([row])))
    assert (mine[0] < task.costs(sample)).mean() > 0.95


def test_what_rules_say_of_features_is_the_estimate_where_a_program_has_one_block() -> None:
    target = Target.parse("llvm -mcpu=x86-64-v3")
    program = create({"op": "matmul", "m": 96, "n": 80, "k": 64, "dtype": "float32"})
    alone = [s for s in space_of(program, target).sketches if s.mains == (s.main,)]
    assert alone
    for sketch in alone:
        rows = sketch.columns.random(64, np.random.default_rng(3))
        told = estimated_cycles(sketch.columns.features(rows), target)
        assert told.tolist() == cycles(sketch, rows, target).tolist()
