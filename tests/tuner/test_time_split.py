"""Where the seconds of a search went."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pytest
from lab import Lab
from synthetic import FakeMachine, run, session, task, tiles, timed

from tilewright.compiler.target import Hardware
from tilewright.db import Store
from tilewright.db.fleet_records import LeaseItem
from tilewright.db.records import Job, Settlement
from tilewright.measure.messages import MeasureInput, MeasureResult
from tilewright.tuner.candidate import Features
from tilewright.tuner.cost_model import ROWS, KernelRidge, Scores, TrainingSet
from tilewright.tuner.session import TuningSession
from tilewright.tuner.strategies.evolutionary import Evolutionary
from tilewright.tuner.strategies.guided import Guided
from tilewright.tuner.task import TuningTask
from tilewright.tuner.time_split import Stopwatch, TimeSplit
from tilewright.tuner.tune import Tuner

HERE = Hardware.of({"architecture": "test"})
PARTS = ["generate", "features", "train", "propose", "load", "build", "run", "other"]


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_part_within_another_is_not_counted_there() -> None:
    clock = Clock()
    watch = Stopwatch(clock)
    clock.now = 1.0
    with watch.part("propose"):
        clock.now = 3.0
        with watch.part("train"):
            clock.now = 7.0
        clock.now = 15.0
    clock.now = 31.0
    assert watch.split(20.0) == TimeSplit(train=4.0, propose=10.0, other=6.0)


def test_a_part_that_is_left_by_an_error_is_counted() -> None:
    clock = Clock()
    watch = Stopwatch(clock)
    with pytest.raises(OSError, match="no"), watch.part("train"):
        clock.now = 2.0
        raise OSError("no")
    assert watch.split(2.0) == TimeSplit(train=2.0)


def test_parts_that_overlap_leave_nothing_over() -> None:
    watch = Stopwatch()
    watch.add("build", 3.0)
    watch.add("run", 4.0)
    watch.add("build", 2.0)
    assert watch.split(6.0) == TimeSplit(build=5.0, run=4.0, other=0.0)


def test_the_search_is_what_it_does_itself() -> None:
    assert TimeSplit(1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0).search == 15.0


def test_the_record_says_where_the_time_of_a_search_went() -> None:
    class Slow(FakeMachine):
        def measure(self, item: MeasureInput, ahead: MeasureInput | None = None) -> MeasureResult:
            clock.now += 0.5
            result = super().measure(item)
            return MeasureResult(
                result.item,
                1,
                result.seconds,
                result.samples,
                error=0.1,
                build_seconds=0.25,
                wall_seconds=0.375,
            )

    clock = Clock()
    machine = Slow()
    record = Tuner(task=task(tiles()), hardware=HERE, trials=24, clock=clock).run(machine)
    measured = len(machine.items)
    assert (record.split.build, record.split.run) == (0.25 * measured, 0.125 * measured)
    assert record.split.other == pytest.approx(0.125 * measured - record.split.search - record.split.load)
    assert min(getattr(record.split, part) for part in PARTS) > 0


def test_the_last_word_of_a_job_is_the_report_of_its_time_and_its_model(store: Store) -> None:
    def settle(item: LeaseItem) -> Settlement:
        seconds = lab.seconds(json.loads(item.trace))
        return Settlement(
            item.trial, item.attempt, seconds, (seconds,), error=0.1, build_seconds=2.0, wall_seconds=3.0
        )

    lab = Lab(store, settle=settle)
    job = lab.search(lab.job(trials=24))
    (report,) = lab.events(job, "report")
    assert list(report["seconds"]) == PARTS == [field.name for field in fields(TimeSplit)]
    assert (report["seconds"]["build"], report["seconds"]["run"]) == (48.0, 24.0)
    assert report["model"] == lab.events(job, "model")[-1]["overall"]
    assert [event.kind for event in store.events(job.id)][-2:] == ["report", "state"]


def test_tuning_here_records_the_same_events(store: Store) -> None:
    record = Tuner(task=task(tiles()), hardware=HERE, trials=24, store=store).run(FakeMachine())
    events = [(e.kind, json.loads(e.data)) for e in store.events(record.job or "")]
    models = [data for kind, data in events if kind == "model"]
    assert [data["batch"] for data in models] == [each.batch for each in record.model.rounds]
    assert models[-1]["overall"] == record.model.to_json()
    assert [data for kind, data in events if kind == "report"] == [
        {"seconds": record.split.to_json(), "model": record.model.to_json()}
    ]


def test_each_batch_that_was_predicted_is_a_model_event_once_though_the_search_was_restarted(
    store: Store,
) -> None:
    class Killed(BaseException):
        pass

    def kill(nap: int) -> None:
        if nap == 4:
            raise Killed

    lab = Lab(store, during=kill)
    job = lab.job()
    with pytest.raises(Killed):
        lab.search(job)
    # Results come in while nobody searches, too.
    lab.during, _ = lambda nap: None, lab.work()
    lab.search(job)
    whole = Lab(store)
    other = whole.search(whole.job())
    assert lab.events(job, "model") == whole.events(other, "model") != []
    assert list(lab.events(job, "model")[0]) == [
        "batch",
        "trials",
        "rank_correlation",
        "pairwise_accuracy",
        "top_recall",
        "trusted",
        "overall",
    ]


class Counting(KernelRidge):
    """Counts what a round costs in rows."""

    def __init__(self) -> None:
        super().__init__(reason="counting")

    def update(self, training: TrainingSet) -> None:
        rows["trained"].append(len(training))

    def predict(self, features: Features) -> Scores:
        rows["predicted"].append(len(features))
        return np.zeros(len(features), dtype=np.float32)


rows: dict[str, list[int]] = {"trained": [], "predicted": []}


@pytest.mark.parametrize(
    "strategy", [Evolutionary(Counting, population=512), Guided(Counting, population=512)]
)
def test_a_round_after_five_thousand_trials_costs_no_more_rows_than_an_early_one(strategy: Any) -> None:
    before = session(tiles(), strategy, 5_000, batch_size=2_500)
    run(before)
    after = session(tiles(), strategy, 6_000, adopted=before.candidates)
    for trial in before.history:
        after.tell(trial.candidate.number, trial.outcome)
    young = session(tiles(), strategy, 64)
    for _ in range(6):
        for candidate in young.ask():
            young.tell(candidate.number, timed(candidate))
    early, late = rows_of_a_round(young), rows_of_a_round(after)
    assert max(early["trained"] + late["trained"]) <= ROWS
    # Where it was resumed: the model of the last turning point, and what came since.
    assert len(late["trained"]) <= 2
    assert sum(late["predicted"]) < 1.5 * sum(early["predicted"])


def rows_of_a_round(searched: TuningSession) -> dict[str, list[int]]:
    rows["trained"], rows["predicted"] = [], []
    searched.ask()
    return dict(rows)


def test_a_rule_that_failed_is_an_event_of_the_job_that_names_it(store: Store) -> None:
    @dataclass
    class Broken(Lab):
        def task(self, job: Job, store: Store) -> TuningTask:
            return replace(super().task(job, store), space_errors={"windows": "rule 'windows' fails on …"})

    lab = Broken(store)
    job = lab.search(lab.job(trials=4))
    assert lab.events(job, "space_error") == [{"rule": "windows", "message": "rule 'windows' fails on …"}]
