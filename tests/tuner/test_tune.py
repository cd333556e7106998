"""Tuning in one process."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from typing import Any

import pytest
from rich.console import Console
from synthetic import WORKLOAD, FakeMachine, space, task, tile_seconds, tiles

from tilewright.compiler import topi
from tilewright.compiler.target import Hardware, Target, TargetError
from tilewright.db import Store
from tilewright.tuner import local
from tilewright.tuner.errors import NoLegalCandidate, NotASqlStore, UnknownStrategy
from tilewright.tuner.model_quality import ModelQuality
from tilewright.tuner.opening import open_task
from tilewright.tuner.progress import TerminalProgress, describe
from tilewright.tuner.pruning import pruned
from tilewright.tuner.record import TuningRecord
from tilewright.tuner.snapshot import Snapshot
from tilewright.tuner.tune import Tuner
from tilewright.tuner.tune import tune as search

HERE = Hardware.of({"architecture": "test"})


def tune(machine: FakeMachine | None = None, **options: Any) -> TuningRecord:
    options = {"task": task(options.pop("space", tiles())), "trials": 24, **options}
    return Tuner(hardware=HERE, **options).run(machine or FakeMachine())


def test_a_target_whose_candidates_no_confined_process_builds_is_refused_before_any_trial() -> None:
    func = topi.create({"op": "matmul", "m": 4, "n": 4, "k": 4})
    said = "^target c: building a candidate takes files and a compiler, which a measuring process has not;"
    with pytest.raises(TargetError, match=said):
        search(func, target="c", trials=2)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_record_says_what_was_found_and_how() -> None:
    machine = FakeMachine()
    record = tune(machine, strategy="random", clock=Clock())
    times = [tile_seconds(item.trace) for item in machine.items[:24]]
    assert record.best is not None
    assert record == TuningRecord(
        workload=WORKLOAD,
        target=task(tiles()).target_key,
        hardware=HERE.key,
        state="completed",
        reason="all 24 trials of the budget are done",
        seconds=min(times),
        samples=record.samples,
        best=record.best,
        trial_count=24,
        failures={},
        wall_seconds=0.0,
        search_seconds=record.search_seconds,
        strategy="random",
        flops=2_000_000,
        job=None,
        pruning=pruned(tiles()),
        split=record.split,
        model=ModelQuality(),
    )


def test_the_best_is_the_fastest_trial() -> None:
    machine = FakeMachine()
    record = tune(machine)
    assert record.best is not None
    assert tile_seconds(json.loads(record.best.candidate.trace)) == record.seconds


def test_candidates_race_against_the_best_so_far_unless_told_not_to() -> None:
    racing, alone = FakeMachine(), FakeMachine()
    tune(racing, strategy="random")
    tune(alone, strategy="random", racing=False)
    times = [tile_seconds(item.trace) for item in racing.items[:24]]
    assert [item.best_seconds for item in racing.items[:24]] == [
        min(times[:number], default=None) for number in range(24)
    ]
    assert {item.best_seconds for item in alone.items} == {None}


def test_operations_a_second_follow_from_the_time() -> None:
    record = tune(FakeMachine(lambda trace: 1e-3), trials=1)
    assert record.gflops == pytest.approx(2.0)


def test_the_best_time_so_far_is_handed_to_each_measurement() -> None:
    machine = FakeMachine()
    tune(machine, strategy="random")
    times = [tile_seconds(item.trace) for item in machine.items[:24]]
    assert [item.best_seconds for item in machine.items[:24]] == [
        min(times[:n], default=None) for n in range(24)
    ]


def test_the_final_rounds_are_measured_without_an_early_stop() -> None:
    machine = FakeMachine(lambda trace: 1.0)
    record = tune(machine)
    final = machine.items[24:]
    assert (len(final), {item.best_seconds for item in final}, record.samples) == (15, {None}, (1.0,) * 5)


def test_a_search_is_the_same_whether_or_not_it_thinks_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    def keys(cpus: int) -> list[dict[str, Any]]:
        machine = FakeMachine()
        monkeypatch.setattr(local, "_cpus", lambda: cpus)
        tune(machine, trials=40)
        return [item.trace for item in machine.items]

    assert keys(1) == keys(2)


def test_every_trial_and_the_best_are_recorded(store: Store) -> None:
    record = tune(store=store)
    assert record.job is not None
    job, best = store.job(record.job), store.best(WORKLOAD, record.target, HERE.key)
    assert best is not None
    assert (job.state, job.origin, job.done, best.job, best.seconds) == (
        "completed",
        "local",
        24,
        job.id,
        min(trial.seconds or 9 for trial in store.trials(job.id)),
    )


def test_the_outcome_names_candidates_that_were_excluded_for_wrong_results() -> None:
    record = tune(FakeMachine(fails=lambda n: "wrong_output" if n in (3, 5) else None))
    assert (record.state, record.reason) == (
        "completed",
        "all 24 trials of the budget are done; 2 candidates excluded for wrong results "
        "(wrong_output on purpose); the results of the winner were verified",
    )


def test_failures_are_recorded_with_their_last_words(store: Store) -> None:
    record = tune(FakeMachine(fails=lambda n: "build_error" if n == 3 else None), store=store)
    trial = store.trials(record.job or "")[3]
    assert (record.failures, trial.outcome, trial.failure_message, json.loads(trial.failure_detail)) == (
        {"build_error": 1},
        "build_error",
        "build_error on purpose",
        {"limit": None, "elapsed": None, "last_words": ""},
    )


def test_the_final_rounds_are_an_event_of_the_job(store: Store) -> None:
    record = tune(FakeMachine(lambda trace: 1.0), store=store)
    events = [json.loads(e.data) for e in store.events(record.job or "") if e.kind == "crowned"]
    assert events == [
        {
            "number": 0,
            "seconds": 1.0,
            "contenders": [{"number": n, "seconds": [1.0] * 5} for n in range(3)],
        }
    ]


@pytest.mark.parametrize("points", [1, 3, 7])
def test_a_small_space_is_exhausted(points: int) -> None:
    machine = FakeMachine(lambda trace: 1.0 + trace["steps"]["a"])
    record = tune(machine, space=space({"a": range(points)}), trials=64)
    assert (record.state, record.trial_count, record.seconds) == ("exhausted", points, 1.0)


def test_a_search_in_which_all_trials_fail_has_no_trace_and_says_why() -> None:
    record = tune(FakeMachine(fails=lambda n: "run_timeout"), trials=8)
    assert (record.state, record.reason, record.seconds, record.trace, record.samples) == (
        "failed",
        "none of 8 trials gave a time (run_timeout: 8); all 8 trials of the budget are done; "
        "the first one: run_timeout on purpose",
        None,
        None,
        (),
    )


def test_nothing_more_is_measured_after_too_many_failures_in_a_row(store: Store) -> None:
    machine = FakeMachine(fails=lambda n: "run_error")
    record = tune(machine, trials=300, strategy="random", store=store)
    assert (len(machine.items), store.job(record.job or "").state) == (200, "failed")


def test_nothing_legal_ends_the_job_as_failed_and_is_raised(store: Store) -> None:
    nothing = space({"a": (1, 2)}, rules={"registers": lambda pop: pop[:, 0] > 0})
    with pytest.raises(NoLegalCandidate) as refused:
        tune(space=nothing, store=store)
    (job,) = store.jobs().items
    assert (job.state, job.reason) == ("failed", str(refused.value))


def test_an_interrupted_search_is_paused_with_what_was_done(store: Store) -> None:
    def interrupt(number: int) -> None:
        if number == 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(FakeMachine(before=interrupt), store=store)
    (job,) = store.jobs().items
    best = store.best(WORKLOAD, job.target, HERE.key)
    assert best is not None
    assert (job.state, job.reason, best.search.done, best.search.asked) == (
        "paused",
        "interrupted after 12 trials: resume the job to go on",
        12,
        24,
    )


def test_a_runner_that_breaks_ends_the_job_as_failed(store: Store) -> None:
    def die(number: int) -> None:
        raise OSError("no more processes")

    with pytest.raises(OSError, match="no more processes"):
        tune(FakeMachine(before=die), store=store)
    (job,) = store.jobs().items
    assert (job.state, job.reason) == ("failed", "no more processes")


def test_a_search_stops_when_its_seconds_are_used_up(store: Store) -> None:
    clock = Clock()

    def second(number: int) -> None:
        clock.now += 1.0

    machine = FakeMachine(lambda trace: 1.0 + trace["steps"]["k0"], before=second)
    record = tune(machine, trials=500, seconds=10.0, clock=clock, store=store)
    assert (record.state, record.reason, record.trial_count) == (
        "completed",
        "the 10 s of the budget are used up",
        10,
    )


def test_an_observer_sees_every_trial() -> None:
    seen: list[Snapshot] = []
    tune(observer=seen.append, trials=8)
    assert [snapshot.done for snapshot in seen] == [*range(1, 9), 8]


def test_a_store_that_is_an_http_client_is_refused_with_what_to_do() -> None:
    class Client:
        def best(self, workload: str, target: str, hardware: str) -> None: ...

    with pytest.raises(NotASqlStore) as refused:
        tune(store=Client())
    assert str(refused.value) == (
        "tune measures in this process and records into a SQL store; Client is not one. Give it "
        'tilewright.connect("sqlite:///tilewright.db"), or let the service search: submit a job with '
        "`tilewright tune WORKLOAD --url URL`, or POST /v1/jobs"
    )


def test_an_unknown_strategy_is_refused_before_anything_is_recorded(store: Store) -> None:
    with pytest.raises(UnknownStrategy):
        tune(store=store, strategy="clairvoyance")
    assert store.jobs().items == ()


@pytest.mark.parametrize(
    "budget",
    [
        {"trials": 0},
        {"seconds": 0.0},
        {"seconds": float("nan")},
        {"target_seconds": 0.0},
        {"target_seconds": float("inf")},
        {"patience": 0},
    ],
)
def test_a_budget_without_room_for_a_trial_is_refused(budget: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"^a budget's (trials|seconds|target_seconds|patience) is "):
        tune(**budget)


def test_a_history_that_is_none_is_refused_before_anything_is_recorded(store: Store) -> None:
    with pytest.raises(ValueError, match=r"^history is use or ignore, not 'forget'$"):
        tune(store=store, history="forget")
    assert store.jobs().items == ()


def test_a_seed_that_no_store_takes_is_refused_before_anything_is_recorded(store: Store) -> None:
    with pytest.raises(ValueError, match=r"^a seed is an integer of less than"):
        tune(store=store, seed=2**53)
    assert store.jobs().items == ()


@pytest.mark.parametrize("func", [None, "matmul", [1]])
def test_what_is_no_program_is_refused_by_name(func: Any) -> None:
    with pytest.raises(
        TypeError, match=r"^what is tuned is a PrimFunc, such as te\.create_prim_func makes, not "
    ):
        open_task(func, Target.parse("llvm"))


def test_a_record_is_printed_without_the_columns_of_its_features() -> None:
    assert "array" not in repr(tune())


def snapshot(**more: Any) -> Snapshot:
    values: dict[str, Any] = {
        "done": 24,
        "asked": 32,
        "trials": 64,
        "best_number": 19,
        "best_seconds": 412.3e-6,
        "best_gflops": 112.06,
        "best_sketch": "s",
        "failures": {"build_error": 2},
        "elapsed": 4.0,
        "remaining": 6.7,
    }
    return Snapshot(**{**values, **more})


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (
            {},
            "24/64 trials · best 412.3 µs, 112.1 GFLOP/s (trial 19) · failed: build_error 2 · 7 s left",
        ),
        (
            {"done": 0, "best_seconds": None, "failures": {}, "remaining": None},
            "0/64 trials",
        ),
        (
            {"done": 64, "best_gflops": None, "failures": {"run_error": 3, "build_error": 1}},
            "64/64 trials · best 412.3 µs (trial 19) · failed: run_error 3, build_error 1",
        ),
    ],
)
def test_progress_is_one_line(more: dict[str, Any], line: str) -> None:
    assert describe(snapshot(**more)) == line


def test_the_progress_line_is_drawn_with_its_title() -> None:
    out = io.StringIO()
    display = TerminalProgress("tuning matmul", Console(file=out, force_terminal=True, width=160))
    with display:
        display.show(snapshot())
    assert "24/64 trials · best 412.3 µs" in out.getvalue()


def test_what_draws_progress_and_what_names_processes_are_not_loaded_before_they_are_needed() -> None:
    code = "import sys, tilewright; tilewright.tune; print({'rich', 'psutil'} & set(sys.modules))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "set()\n"
