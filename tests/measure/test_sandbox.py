from __future__ import annotations

import os
import time
from ast import literal_eval
from dataclasses import replace
from pathlib import Path

import pytest
from measuring import MakeItem, failure_of, servers

from tilewright.measure.messages import Failure, MeasureResult
from tilewright.measure.runner import Runner

MEMORY = 256 << 20


def test_a_candidate_that_behaves_is_measured(runner: Runner, item: MakeItem) -> None:
    result = runner.measure(item("succeed"))
    expected = MeasureResult("trial_1", 1, seconds=0.5, samples=(0.5, 0.75), error=0.25)
    assert replace(result, build_seconds=0.0, wall_seconds=0.0) == expected


def test_the_cost_of_a_trial_beside_the_candidate_is_small(runner: Runner, item: MakeItem) -> None:
    """Of the processors, in this process, the fork server and the candidates' own processes: what else the
    machine does makes a trial longer, but not this."""
    runner.measure(item("succeed"))
    (server,) = servers()

    def seconds() -> float:
        return time.process_time() + sum(server.cpu_times()[:4])

    trials, before = 50, seconds()
    for _ in range(trials):
        runner.measure(item("succeed"))
    assert (seconds() - before) / trials < 0.010


def test_a_candidate_that_hangs_while_it_builds_is_stopped_at_the_build_limit(
    runner: Runner, item: MakeItem
) -> None:
    result = runner.measure(item("hang_in_build", build_seconds=0.25, run_seconds=60.0))
    message = "the build took longer than its limit of 0.25 s"
    assert failure_of(result) == Failure("build_timeout", message, 0.25)


def test_a_candidate_that_hangs_while_it_runs_is_stopped_at_the_run_limit(
    runner: Runner, item: MakeItem
) -> None:
    result = runner.measure(item("hang_in_run", build_seconds=60.0, run_seconds=0.25))
    assert failure_of(result) == Failure("run_timeout", "the run took longer than its limit of 0.25 s", 0.25)


def test_a_timeout_says_how_long_the_candidate_took(runner: Runner, item: MakeItem) -> None:
    failure = runner.measure(item("hang_in_run", run_seconds=0.25)).failure
    assert failure is not None and failure.elapsed is not None
    assert 0.25 <= failure.elapsed < 0.5


def test_a_timeout_carries_the_last_words(runner: Runner, item: MakeItem) -> None:
    failure = runner.measure(item("hang_in_build", build_seconds=0.25)).failure
    assert failure is not None and failure.last_words == "building forever"


def test_a_candidate_within_a_long_limit_is_left_alone(runner: Runner, item: MakeItem) -> None:
    assert runner.measure(item("sleep", seconds=1.0, run_seconds=30.0)).seconds == 0.5


def test_a_candidate_that_ignores_every_signal_is_stopped(runner: Runner, item: MakeItem) -> None:
    result = runner.measure(item("ignore_signals_and_hang", run_seconds=0.25))
    assert failure_of(result).kind == "run_timeout"


def test_a_candidate_that_closes_its_pipes_and_hangs_is_stopped(runner: Runner, item: MakeItem) -> None:
    result = runner.measure(item("close_everything_and_hang", run_seconds=0.25))
    assert failure_of(result) == Failure("run_timeout", "the run took longer than its limit of 0.25 s", 0.25)


def test_a_candidate_that_allocates_without_end_fails_by_the_memory_limit(
    runner: Runner, item: MakeItem
) -> None:
    result = runner.measure(item("allocate_without_end", memory_bytes=MEMORY))
    message = "it needed more than its memory limit of 256 MiB"
    assert failure_of(result) == Failure("run_error", message, MEMORY)


def test_a_build_that_allocates_without_end_is_a_build_error(runner: Runner, item: MakeItem) -> None:
    result = runner.measure(item("allocate_without_end_in_build", memory_bytes=MEMORY))
    message = "it needed more than its memory limit of 256 MiB"
    assert failure_of(result) == Failure("build_error", message, MEMORY)


def test_native_code_that_aborts_for_want_of_memory_fails_by_the_memory_limit(
    runner: Runner, item: MakeItem
) -> None:
    result = runner.measure(item("say_bad_alloc", memory_bytes=MEMORY))
    message = "it needed more than its memory limit of 256 MiB"
    assert failure_of(result) == Failure("build_error", message, MEMORY)


@pytest.mark.parametrize(
    ("behaviour", "failure"),
    [
        ("crash_in_run", Failure("run_error", "it died of SIGSEGV while running")),
        ("crash_in_build", Failure("build_error", "it died of SIGSEGV while building")),
        (
            "kill_itself",
            Failure(
                "run_error", "it died of SIGKILL while running, perhaps by the system for want of memory"
            ),
        ),
        ("raise_in_run", Failure("run_error", "LookupError: no such loop")),
        ("raise_in_build", Failure("build_error", "LookupError: no such loop")),
        ("exit_quietly", Failure("run_error", "it exited with status 3 while running, without a result")),
        ("call_sys_exit", Failure("run_error", "SystemExit: enough")),
        (
            "close_everything_and_exit",
            Failure("build_error", "it exited with status 7 while building, without a result"),
        ),
        (
            "forge_a_result",
            Failure(
                "run_error",
                "the candidate wrote into its result channel: a frame that is not JSON: "
                "Expecting value: line 1 column 1 (char 0)",
            ),
        ),
        (
            "write_a_huge_result",
            Failure(
                "run_error",
                "the candidate wrote into its result channel: "
                "a frame of 2130706432 bytes, over the limit of 1048576",
            ),
        ),
        (
            "answer_for_another",
            Failure(
                "run_error",
                "the candidate wrote into its result channel: "
                "/result/item: a result of another item, another",
            ),
        ),
    ],
)
def test_a_candidate_that_fails_is_typed(
    runner: Runner, item: MakeItem, behaviour: str, failure: Failure
) -> None:
    assert failure_of(runner.measure(item(behaviour))) == failure


def test_a_crash_says_in_its_last_words_where_it_was(runner: Runner, item: MakeItem) -> None:
    failure = runner.measure(item("crash_in_run")).failure
    assert failure is not None and "in _crash_in_run" in failure.last_words


def test_a_candidate_that_prints_without_end_is_still_measured(runner: Runner, item: MakeItem) -> None:
    assert runner.measure(item("print_much_and_succeed")).seconds == 0.5


def test_the_last_words_are_the_end_of_what_was_printed(runner: Runner, item: MakeItem) -> None:
    failure = runner.measure(item("print_much_and_fail")).failure
    assert failure is not None
    assert (len(failure.last_words), failure.last_words[-18:]) == (7999, "xxx\nthe last words")


def test_a_candidate_sees_nothing_of_the_worker(runner: Runner, item: MakeItem) -> None:
    seen = literal_eval(failure_of(runner.measure(item("look_around"))).message.removeprefix("LookupError: "))
    assert seen == {
        "environment": ["LC_ALL", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PYTHONPATH"],
        "descriptors": [0, 1, 2, 3],
        "stdin": b"",
        "cwd": "/",
        "group is its own": True,
        "user": os.geteuid() or 65534,
        "no new privileges": "1",
        "threads": "1",
    }


def test_a_candidate_cannot_fork(runner: Runner, item: MakeItem) -> None:
    assert failure_of(runner.measure(item("fork_a_grandchild"))).message.startswith("BlockingIOError")


def test_a_candidate_cannot_fill_the_disk(runner: Runner, item: MakeItem, tmp_path: Path) -> None:
    path = tmp_path / "left behind"
    runner.measure(item("write_a_file", path=str(path)))
    assert not path.exists() or path.stat().st_size == 0


def test_no_candidate_leaves_a_process(runner: Runner, item: MakeItem) -> None:
    for behaviour in ("hang_in_run", "crash_in_run", "close_everything_and_hang", "fork_a_grandchild"):
        runner.measure(item(behaviour, run_seconds=0.1))
    assert [child.children() for child in servers()] == [[]]


def test_sixty_candidates_of_which_half_time_out_leave_nothing_open_and_no_file(
    runner: Runner, item: MakeItem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    (server,) = servers()
    before = server.num_fds()
    for _ in range(30):
        runner.measure(item("succeed"))
        runner.measure(item("hang_in_build", build_seconds=0.02))
    assert (server.num_fds(), os.listdir(tmp_path)) == (before, [])


def test_of_ten_candidates_of_which_some_do_not_build_and_one_crashes_the_others_are_timed_as_ever(
    runner: Runner, item: MakeItem
) -> None:
    behaviours = [
        *("raise_in_build", "succeed", "succeed", "crash_in_build", "crash_in_run"),
        *("succeed", "succeed", "raise_in_build", "succeed", "succeed"),
    ]
    results = [runner.measure(item(each, name=f"trial_{n}")) for n, each in enumerate(behaviours)]
    assert [result.failure.kind if result.failure else result.seconds for result in results] == [
        *("build_error", 0.5, 0.5, "build_error", "run_error"),
        *(0.5, 0.5, "build_error", 0.5, 0.5),
    ]
    # What did not build was never run; what crashed has taken nothing with it.
    assert len(servers()) == 1
