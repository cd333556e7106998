"""The next candidate is built while the present one is timed, where a processor is to spare."""

from __future__ import annotations

import os
import time
from ast import literal_eval
from collections.abc import Iterator
from dataclasses import replace

import psutil
import pytest
from measuring import MakeItem, failure_of, servers

from tilewright.compiler.target.hardware import usable_cores
from tilewright.measure import processors
from tilewright.measure.messages import Failure, MeasureInput, MeasureResult
from tilewright.measure.runner import Runner

needs_two = pytest.mark.skipif(usable_cores() < 2, reason="needs two cores")


@pytest.fixture
def own_runner() -> Iterator[Runner]:
    with Runner("misbehaving:behaves") as runner:
        yield runner


def children() -> list[psutil.Process]:
    return [child for server in servers() for child in server.children()]


def told(result: MeasureResult) -> tuple[float | None, float | None, float, float, list[int]]:
    """What to beat as it was told and as the item said, when it had built and when it ran, and where."""
    assert result.failure is not None
    value: tuple[float | None, float | None, float, float, list[int]] = literal_eval(
        result.failure.message.removeprefix("LookupError: ")
    )
    return value


@needs_two
def test_the_next_candidate_has_built_before_the_present_one_ends(runner: Runner, item: MakeItem) -> None:
    following = item("tell_what_to_beat", name="trial_2")
    assert runner.measure(item("sleep", seconds=0.5), following).seconds == 0.5
    ended = time.monotonic()
    _, _, built, ran, where = told(runner.measure(following))
    assert built < ended <= ran
    assert where == sorted(os.sched_getaffinity(0))


@needs_two
def test_it_builds_beside_the_processor_of_the_one_that_is_timed(runner: Runner, item: MakeItem) -> None:
    runner.measure(item("sleep", seconds=0.2), item("say_where_it_builds", name="trial_2"))
    words = failure_of(runner.measure(item("say_where_it_builds", name="trial_2"))).message
    there = literal_eval(words.removeprefix("LookupError: "))
    assert 0 < len(there) < usable_cores()


@needs_two
def test_it_beats_what_is_the_best_when_it_runs(runner: Runner, item: MakeItem) -> None:
    following = item("tell_what_to_beat", name="trial_2", best_seconds=0.5)
    runner.measure(item("sleep", seconds=0.2), following)
    best, when_built, *_ = told(runner.measure(replace(following, best_seconds=0.25)))
    assert (best, when_built) == (0.25, 0.5)


def test_what_is_measured_next_is_another_than_was_said(runner: Runner, item: MakeItem) -> None:
    runner.measure(item("sleep", seconds=0.1), item("crash_in_build", name="trial_2"))
    assert runner.measure(item("succeed", name="trial_3")).seconds == 0.5
    assert children() == []


@pytest.mark.parametrize(
    ("behaviour", "failure"),
    [
        ("raise_in_build", Failure("build_error", "LookupError: no such loop")),
        ("crash_in_build", Failure("build_error", "it died of SIGSEGV while building")),
        ("hang_in_build", Failure("build_timeout", "the build took longer than its limit of 1 s", 1.0)),
        ("raise_in_run", Failure("run_error", "LookupError: no such loop")),
        ("crash_in_run", Failure("run_error", "it died of SIGSEGV while running")),
        ("hang_in_run", Failure("run_timeout", "the run took longer than its limit of 1.5 s", 1.5)),
        (
            "allocate_without_end_in_build",
            Failure("build_error", "it needed more than its memory limit of 256 MiB", float(256 << 20)),
        ),
    ],
)
def test_a_failure_ahead_is_that_of_its_own_candidate(
    runner: Runner, item: MakeItem, behaviour: str, failure: Failure
) -> None:
    limits = {"build_seconds": 1.0, "run_seconds": 1.5, "memory_bytes": 256 << 20}
    following = item(behaviour, name="trial_2", **limits)
    assert runner.measure(item("sleep", seconds=1.2, **limits), following).seconds == 0.5
    assert failure_of(runner.measure(following, item("succeed", name="trial_3", **limits))) == failure
    assert runner.measure(item("succeed", name="trial_3", **limits)).seconds == 0.5
    assert children() == []


@needs_two
def test_waiting_for_its_turn_counts_for_no_limit_and_no_time(runner: Runner, item: MakeItem) -> None:
    limits = {"build_seconds": 0.4, "run_seconds": 1.2}
    following = item("sleep", name="trial_2", seconds=0.1, **limits)
    runner.measure(item("sleep", seconds=1.0, **limits), following)
    result = runner.measure(following)
    assert result.seconds == 0.5
    assert result.build_seconds < 0.4 and result.wall_seconds < 0.9


@needs_two
def test_a_time_that_comes_before_its_turn_does_not_count(runner: Runner, item: MakeItem) -> None:
    following = item("hurry", name="trial_2")
    runner.measure(item("sleep", seconds=0.3), following)
    failure = failure_of(runner.measure(following))
    words = "the candidate wrote into its result channel: /result: a time before it was let run"
    assert failure == Failure("build_error", words)


def test_of_ten_candidates_three_that_do_not_build_are_not_run_and_a_crash_harms_no_other(
    runner: Runner, item: MakeItem
) -> None:
    behaviours = ["succeed", "raise_in_build", "succeed", "crash_in_run", *["succeed", "raise_in_build"] * 2]
    behaviours += ["succeed", "succeed"]
    items = [item(behaviour, name=f"trial_{n}") for n, behaviour in enumerate(behaviours)]
    results = [runner.measure(one, ahead) for one, ahead in zip(items, [*items[1:], None], strict=True)]
    kinds = ["ok" if r.failure is None else r.failure.kind for r in results]
    assert kinds == [
        {"succeed": "ok", "raise_in_build": "build_error", "crash_in_run": "run_error"}[b] for b in behaviours
    ]
    assert [r.seconds for r in results if r.failure is None] == [0.5] * 6
    assert [r.wall_seconds > r.build_seconds for r in results] == [b != "raise_in_build" for b in behaviours]


@needs_two
def test_a_runner_that_is_closed_leaves_nothing_that_waits(item: MakeItem) -> None:
    with Runner("misbehaving:behaves") as runner:
        runner.measure(item("sleep", seconds=0.2), item("succeed", name="trial_2"))
        (waiting,) = children()
    assert psutil.wait_procs([waiting], timeout=5.0)[1] == []


@needs_two
def test_a_fork_server_that_dies_takes_what_waits_with_it(own_runner: Runner, item: MakeItem) -> None:
    own_runner.measure(item("sleep", seconds=0.2), item("succeed", name="trial_2"))
    waiting = children()
    servers()[-1].kill()
    assert psutil.wait_procs(waiting, timeout=5.0)[1] == []
    assert own_runner.measure(item("succeed", name="trial_2")).seconds == 0.5


def test_on_one_processor_nothing_is_built_ahead(item: MakeItem) -> None:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        with Runner("misbehaving:behaves") as runner:
            runner.measure(item("sleep", seconds=0.1), item("succeed", name="trial_2"))
            assert children() == []
    finally:
        os.sched_setaffinity(0, before)


def test_what_needs_another_reference_is_not_built_ahead(runner: Runner, item: MakeItem) -> None:
    other: MeasureInput = replace(item("succeed", name="trial_2"), input_seed=7)
    runner.measure(item("sleep", seconds=0.1), other)
    assert children() == []
    assert runner.measure(other).seconds == 0.5


def test_a_kernel_of_as_many_threads_as_processors_leaves_none_to_spare() -> None:
    assert processors.spare(os.getpid(), usable_cores()) == frozenset()


@needs_two
def test_what_is_to_spare_is_where_the_busy_one_is_not() -> None:
    before = os.sched_getaffinity(0)
    here, *others = sorted(before)
    os.sched_setaffinity(0, {here})
    time.sleep(0.01)
    try:
        os.sched_setaffinity(0, before)
        assert processors.spare(os.getpid(), 1) <= set(others)
    finally:
        os.sched_setaffinity(0, before)


def test_a_candidate_ended_by_its_alarm_is_slower_than_so(runner: Runner, item: MakeItem) -> None:
    result = runner.measure(item("ring", best_seconds=0.01))
    assert (result.failure, result.censored, result.seconds, result.samples) == (None, True, 0.2, (0.2,))


def test_an_alarm_that_nobody_set_is_a_crash(runner: Runner, item: MakeItem) -> None:
    failure = failure_of(runner.measure(item("ring")))
    assert failure == Failure("run_error", "it died of SIGPROF while running")
