"""What holds for every strategy: nothing illegal, nothing twice, nothing by chance."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from lab import Lab
from synthetic import FakeMachine, run, session, space, task, tile_seconds, tiles, timed

from tilewright.compiler.target.hardware import Hardware
from tilewright.db import Store
from tilewright.tuner import cost_model
from tilewright.tuner.candidate import Candidate
from tilewright.tuner.outcome import Outcome
from tilewright.tuner.pool import Pool
from tilewright.tuner.strategies import STRATEGIES, Point, View, load_strategy
from tilewright.tuner.tune import Tuner

EVERY = pytest.mark.parametrize("name", sorted(STRATEGIES))
LEARNING = ["evolutionary", "guided"]


def failing(candidate: Candidate) -> Outcome:
    """Every third trial fails."""
    return timed(candidate) if candidate.number % 3 else Outcome(failure="run_error")


@EVERY
def test_every_proposal_is_legal_and_costs_exactly_one_trial(name: str) -> None:
    of = tiles()
    searched = session(of, load_strategy(name), 96)
    told = run(searched, failing)
    columns = {sketch.name: sketch.columns for sketch in of.sketches}
    legal = [columns[c.sketch].valid(np.array([c.row]))[0] for c in told if c.row is not None]
    assert (len(told), searched.told, sum(legal), len({c.key for c in told})) == (96, 96, 96, 96)


@EVERY
def test_ten_thousand_points_of_a_tight_space_are_legal(name: str) -> None:
    """One row in sixteen is legal; a strategy goes on proposing for as long as it is asked."""
    shape = {f"k{n}": tuple(2**n for n in range(8)) for n in range(6)}
    tight = space(shape, rules={"small": lambda pop: pop[:, :4].prod(axis=1) > 512})
    searched = session(tight, load_strategy(name), 24)
    run(searched, failing)
    pools = [Pool(0, tight.sketches[0])]
    view = View(6, pools, (), searched.history)
    rows = []
    for turn in range(40):
        rng = np.random.default_rng(turn)
        for point in islice(load_strategy(name).propose(replace(view, batch=6 + turn), 8, rng), 250):
            pools[0].take(point.row)
            rows.append(point.row)
    assert tight.sketches[0].columns.valid(np.array(rows)).all()
    assert len(rows) == 10_000


@EVERY
def test_eight_workers_measure_each_of_a_hundred_and_fifty_points_once(name: str) -> None:
    """More trials are asked for than there are points, and results come in any order while others are out."""
    small = space({"a": range(10), "b": range(15)})
    searched = session(small, load_strategy(name), 200)
    rng = np.random.default_rng(0)
    while not searched.finished:
        while searched.ready:
            searched.ask()
        waiting = searched.outstanding
        for n in rng.permutation(len(waiting))[:8]:
            steps = np.array(waiting[n].row)
            searched.tell(waiting[n].number, Outcome.timed(1e-3 * (1 + float(steps.sum()))))
    assert (searched.told, len({c.row for c in searched.candidates}), searched.state) == (
        150,
        150,
        "exhausted",
    )


@EVERY
def test_points_are_a_function_of_the_view_the_count_and_the_random_numbers(name: str) -> None:
    searched = session(tiles(), load_strategy(name), 48)
    run(searched, failing)
    used = load_strategy(name)
    run(session(tiles(), used, 32, seed=9))

    def points(strategy: object) -> list[tuple[int, tuple[int, ...], str, float | None]]:
        pools = [Pool(n, sketch) for n, sketch in enumerate(tiles().sketches)]
        for candidate in searched.candidates:
            pools[int(candidate.sketch[1:])].take(np.array(candidate.row))
        view = View(9, pools, (), searched.history[:32])
        proposed: Iterator[Point] = strategy.propose(view, 8, np.random.default_rng(1))  # type: ignore[attr-defined]
        return [(p.pool, tuple(p.row.tolist()), p.origin, p.predicted) for p in islice(proposed, 24)]

    assert points(load_strategy(name)) == points(used)


@EVERY
def test_a_session_made_anew_from_what_was_told_goes_on_the_same(name: str) -> None:
    whole = session(tiles(), load_strategy(name), 250, batch_size=25)
    run(whole)
    again = session(tiles(), load_strategy(name), 250, batch_size=25)
    outcomes = {t.candidate.number: t.outcome for t in whole.history}
    run(again, lambda candidate: outcomes[candidate.number])
    assert [c.key for c in again.candidates] == [c.key for c in whole.candidates]


@EVERY
def test_every_proposal_says_what_made_it(name: str) -> None:
    searched = session(tiles(), load_strategy(name), 64, defaults=[("s1", (1, 2, 4, 8, 16, 32))])
    run(searched)
    origins = {candidate.origin for candidate in searched.candidates}
    known = {"default", "random", "spread", "grid", "annealing", "local", "model", "elsewhere", "promising"}
    assert origins <= known and "" not in origins


@pytest.mark.parametrize("name", LEARNING)
def test_every_proposal_after_the_first_results_was_predicted(name: str) -> None:
    searched = session(tiles(), load_strategy(name), 64)
    run(searched)
    assert all(candidate.predicted is not None for candidate in searched.candidates if candidate.batch >= 2)


@pytest.fixture(params=cost_model.MODELS)
def model(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The models that a search may come to have."""
    if request.param != "xgboost":
        find = importlib.util.find_spec
        monkeypatch.setattr(cost_model, "find_spec", lambda name: None if name == "xgboost" else find(name))
    return str(request.param)


@EVERY
def test_every_strategy_with_every_model_runs_here(name: str, model: str) -> None:
    tuner = Tuner(task=task(tiles()), hardware=Hardware.of({"architecture": "test"}), trials=8, strategy=name)
    record = tuner.run(FakeMachine(tile_seconds))
    assert (record.state, record.trial_count, record.strategy.startswith(name)) == ("completed", 8, True)
    assert model in record.strategy or name not in LEARNING


@EVERY
def test_every_strategy_with_every_model_runs_as_a_job(name: str, model: str, store: Store) -> None:
    lab = Lab(store)
    job = lab.search(lab.job(trials=8, strategy=name))
    (said,) = [event["strategy"] for event in lab.events(job, "search")]
    assert (job.state, len(lab.keys(job))) == ("completed", 8)
    assert said.startswith(name) and (model in said or name not in LEARNING)
