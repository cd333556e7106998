"""What is taken over from related workloads, for real programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tilewright.compiler.target import Target
from tilewright.compiler.topi import create
from tilewright.db import Store, open_store
from tilewright.db.records import NewJob, NewTrial, Settlement
from tilewright.tuner.look_back import look_back
from tilewright.tuner.opening import open_task
from tilewright.tuner.past import feature_count
from tilewright.tuner.related import TRANSFERRED
from tilewright.tuner.suggested import SUGGESTED
from tilewright.tuner.task import TuningTask
from tilewright.tuner.warm_start import Snapshot, recall

HERE, THERE = "ab" * 32, "cd" * 32


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path}/t.db") as store:
        store.put_hardware(HERE, "{}")
        store.put_hardware(THERE, "{}")
        yield store


def matmul(m: int, n: int, k: int) -> TuningTask:
    return task({"op": "matmul", "m": m, "n": n, "k": k})


def task(operator: dict[str, object], target: str = "llvm -mcpu=x86-64-v3") -> TuningTask:
    return open_task(create({"dtype": "float32", **operator}), Target.parse(target))


def measured(store: Store, of: TuningTask, count: int, hardware: str = HERE, sketch: int = 0) -> list[str]:
    """A search of `count` random points of one sketch, the first the fastest; their traces."""
    store.put_workload(of.workload_key, of.name, json.dumps(of.workload), of.script)
    store.put_target(of.target_key, json.dumps(of.target, sort_keys=True))
    new = NewJob(of.workload_key, of.target_key, hardware, count, None, 0, "random", 0.0, "local", "{}")
    job = store.create_job(new).id
    epoch = store.begin_search(job)
    chosen = of.space.sketches[sketch]
    rows = np.unique(chosen.columns.random(4 * count, np.random.default_rng(5)), axis=0)[:count]
    features = chosen.columns.features(rows)
    traces = [json.dumps(chosen.resolve(row).to_json()) for row in rows]
    for n, trace in enumerate(traces):
        blob = features[n].astype("<f4").tobytes()
        trial = NewTrial(n, 0, f"{job}c{n}", chosen.name, trace, blob, of.feature_schema, 0)
        store.add_trials(job, epoch, [trial])
        seconds = 1e-3 * (1 + n)
        settled = Settlement(seconds=seconds, samples=(seconds,), error=0.1, codegen_version=of.codegen)
        store.settle_local(job, epoch, n, settled)
    store.finish_job(job, epoch, "completed", "")
    return traces


def test_what_is_taken_over_are_different_legal_points(store: Store) -> None:
    for shape in ((64, 64, 64), (512, 512, 512), (100, 30, 70)):
        measured(store, matmul(*shape), 6)
    new = matmul(96, 80, 127)
    snapshot = look_back(store, new, HERE)
    by_name = {sketch.name: sketch for sketch in new.space.sketches}
    assert len(set(snapshot.transferred)) == len(snapshot.transferred) == TRANSFERRED
    for name, row in snapshot.transferred:
        columns = by_name[name].columns
        assert columns.valid(np.array([row]))[0]
        assert all(value in knob.domain for value, knob in zip(row, columns.knobs, strict=True))


def test_the_fastest_of_the_nearest_shape_comes_first(store: Store) -> None:
    far, near = matmul(16, 2048, 16), matmul(250, 260, 240)
    measured(store, far, 4)
    (fastest, *_) = measured(store, near, 4)
    new = matmul(256, 256, 256)
    name, row = look_back(store, new, HERE).transferred[0]
    sketch = next(s for s in new.space.sketches if s.name == name)
    known = sketch.decisions(json.loads(fastest))  # type: ignore[attr-defined]
    wanted = [known.knobs[knob.name] for knob in sketch.columns.knobs]
    np.testing.assert_allclose(np.log2(row), np.log2(wanted), atol=1.01)


def test_the_same_hardware_comes_before_another(store: Store) -> None:
    measured(store, matmul(64, 64, 64), 4, THERE)
    (fastest, *_) = measured(store, matmul(512, 512, 512), 4, HERE)
    new = matmul(512, 512, 256)
    name, row = look_back(store, new, HERE).transferred[0]
    sketch = next(s for s in new.space.sketches if s.name == name)
    steps = json.loads(fastest)["steps"]
    made = sketch.resolve(np.array(row)).to_json()["steps"]
    assert [step["factors"] for step in made if "factors" in step] == [
        step["factors"] for step in steps if "factors" in step
    ]


def test_the_model_learns_from_other_operators_and_hardware_by_group(store: Store) -> None:
    measured(store, task({"op": "softmax", "m": 64, "n": 128}), 4)
    measured(store, matmul(64, 64, 64), 5, THERE)
    new = matmul(96, 96, 96)
    prior = recall(look_back(store, new, HERE), store, new).prior
    assert prior is not None
    assert (len(prior), prior.says) == (9, "9 trials of 2 earlier searches")
    assert [sorted(prior.scores[prior.groups == group])[-1] for group in np.unique(prior.groups)] == [
        1.0,
        1.0,
    ]
    assert prior.features.shape == (9, feature_count(new.space))


def test_many_searches_teach_no_more_than_a_bounded_number_of_rows(store: Store) -> None:
    for m in range(40, 76):
        measured(store, matmul(m, 48, 48), 3)
    new = matmul(96, 96, 96)
    snapshot = look_back(store, new, HERE)
    assert len({group for _, _, group in snapshot.prior}) == 32


def test_a_store_without_structures_learns_them_once(store: Store) -> None:
    old = matmul(64, 64, 64)
    measured(store, old, 3)
    new = matmul(96, 96, 96)
    assert [found.structure for found in store.past_searches(HERE, "")] == [None]
    look_back(store, new, HERE)
    assert old.structure is not None
    assert [found.structure for found in store.past_searches(HERE, "")] == [old.structure.key]


def test_a_schedule_outside_of_the_space_teaches_by_its_replay(store: Store) -> None:
    of = matmul(64, 64, 64)
    measured(store, of, 2)
    job = store.jobs().items[0].id
    database = store._database  # type: ignore[attr-defined]
    with database.write() as conn:
        steps = json.dumps({"version": 1, "steps": []})
        conn.exec_driver_sql("UPDATE trials SET feature_schema = 1, sketch = 'gone', trace = ?", (steps,))
        conn.exec_driver_sql("UPDATE trials SET trace = '{\"version\": 1}' WHERE number = 1")
    snapshot = look_back(store, of, HERE)
    assert (snapshot.known, snapshot.not_applicable) == ((), {"no sketch has its steps": 2})
    assert snapshot.prior == ((f"{job}.0", 1.0, 0),)
    prior = recall(snapshot, store, of).prior
    assert prior is not None
    assert prior.features.shape == (1, feature_count(of.space))


def test_a_suggested_schedule_of_an_earlier_search_is_known_though_it_is_no_point(store: Store) -> None:
    of = matmul(64, 64, 64)
    measured(store, of, 2)
    with store._database.write() as conn:  # type: ignore[attr-defined]
        steps = json.dumps({"version": 1, "steps": []})
        conn.exec_driver_sql("UPDATE trials SET sketch = ?, trace = ? WHERE number = 0", (SUGGESTED, steps))
    known = recall(look_back(store, of, HERE), store, of).known
    assert [(trial.candidate.sketch, trial.candidate.row is None) for trial in known] == [
        (SUGGESTED, True),
        (of.space.sketches[0].name, False),
    ]


def test_a_snapshot_is_read_back_as_it_was_written() -> None:
    snapshot = Snapshot(
        known=(("j.0", 0.5), ("j.1", None)),
        prior=(("k.3", 0.25, 0),),
        transferred=(("tiled", (1, 2)),),
        not_applicable={"a": 1},
        skipped={"b": 2},
    )
    assert Snapshot.from_json(snapshot.to_json()) == snapshot
    assert Snapshot.from_json('{"version": 99}') == Snapshot()
    assert (snapshot.counts.trials, snapshot.counts.best) == (2, "j.0")


def test_trials_that_are_gone_are_left_out(store: Store) -> None:
    of = matmul(64, 64, 64)
    measured(store, of, 2)
    job = store.jobs().items[0].id
    snapshot = Snapshot(known=((f"{job}.1", 1.5), ("gone.0", 1.0)), prior=(("gone.1", 1.0, 0),))
    start = recall(snapshot, store, of)
    assert [(trial.candidate.number, trial.outcome.seconds) for trial in start.known] == [(-1, 1.5)]
    assert start.prior is None


def test_trials_of_an_older_schema_are_described_anew_once(store: Store) -> None:
    old = matmul(64, 64, 64)
    measured(store, old, 4)
    job = store.jobs().items[0].id
    (now, *_) = [trial.features for trial in store.trials(job)]
    with store._database.write() as conn:  # type: ignore[attr-defined]
        conn.exec_driver_sql("UPDATE trials SET feature_schema = 1, features = x'00'")
        unscheduled = json.dumps({"version": 1, "steps": []})
        conn.exec_driver_sql("UPDATE trials SET trace = ? WHERE number = 2", (unscheduled,))
        conn.exec_driver_sql("UPDATE trials SET trace = '{\"version\": 0}' WHERE number = 3")
    new = matmul(96, 96, 96)
    snapshot = look_back(store, new, HERE)
    assert [one for one, _, _ in snapshot.prior] == [f"{job}.0", f"{job}.1", f"{job}.2"]
    assert snapshot.skipped == {"features of another schema": 1}
    schema = new.feature_schema
    described = [(t.features == now, t.feature_schema == schema) for t in store.trials(job)]
    assert described == [(True, True), (False, True), (False, True), (False, False)]
