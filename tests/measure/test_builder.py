"""Candidates whose builds share a process, and which each run in one of their own."""

from __future__ import annotations

import os
import time
from ast import literal_eval
from collections.abc import Iterator
from dataclasses import replace

import psutil
import pytest
from measuring import MakeItem, failure_of, servers
from own_processes import own_children

from tilewright.compiler.target.hardware import usable_cores
from tilewright.measure.builder import MOST_BUILDS
from tilewright.measure.messages import Failure, MeasureResult
from tilewright.measure.runner import Runner
from tilewright.measure.workshop import KEPT

needs_two = pytest.mark.skipif(usable_cores() < 2, reason="needs two cores")
MEMORY = 256 << 20
DESCRIBED = {
    "environment": ["LC_ALL", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PYTHONPATH"],
    "descriptors": [0, 1, 2, 3],
    "stdin": b"",
    "cwd": "/",
    "group is its own": True,
    "user": os.geteuid() or 65534,
    "no new privileges": "1",
    "threads": "1",
}


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner("misbehaving:Builds") as runner:
        yield runner
    assert own_children(recursive=True) == []


@pytest.fixture
def own_runner() -> Iterator[Runner]:
    with Runner("misbehaving:Builds") as runner:
        yield runner


def told(result: MeasureResult) -> tuple[int, int, int, float, list[int]]:
    """Who ran it; who built it, as which of its builds, until when and where."""
    ran, code = literal_eval(failure_of(result).message.removeprefix("LookupError: "))
    return (ran, *literal_eval(code))


def asked(runner: Runner, item: MakeItem, name: str = "trial_1", **more: object) -> tuple[int, ...]:
    """The builder of a candidate, and which of its builds it was."""
    return told(runner.measure(item("say_who_built", name=name, number=name, **more)))[1:3]


def children() -> list[psutil.Process]:
    return [child for server in servers() for child in server.children()]


def test_one_process_builds_what_others_run(own_runner: Runner, item: MakeItem) -> None:
    results = [own_runner.measure(item("say_who_built", number=n)) for n in range(3)]
    ran = {told(result)[0] for result in results}
    (builder,) = {told(result)[1] for result in results}
    assert (len(ran), builder in ran) == (3, False)
    assert [told(result)[2] for result in results] == [1, 2, 3]
    assert [child.pid for child in children()] == [builder]


def test_the_one_that_builds_is_confined(runner: Runner, item: MakeItem) -> None:
    words = failure_of(runner.measure(item("look_around"))).message
    assert literal_eval(words.removeprefix("LookupError: ")) == DESCRIBED


@pytest.mark.parametrize(
    ("behaviour", "failure"),
    [
        ("refuse", Failure("constraint", "vectorize: no such loop")),
        ("raise_in_build", Failure("build_error", "LookupError: no such loop")),
        ("call_sys_exit_in_build", Failure("build_error", "SystemExit: enough")),
        ("crash_in_build", Failure("build_error", "it died of SIGSEGV while building")),
        ("hang_in_build", Failure("build_timeout", "the build took longer than its limit of 1 s", 1.0)),
        (
            "close_everything_and_exit",
            Failure("build_error", "it exited with status 7 while building, without a result"),
        ),
        (
            "allocate_without_end_in_build",
            Failure("build_error", "it needed more than its memory limit of 256 MiB", MEMORY),
        ),
        (
            "say_bad_alloc",
            Failure("build_error", "it needed more than its memory limit of 256 MiB", MEMORY),
        ),
        (
            "forge_in_build",
            Failure(
                "build_error",
                "the candidate wrote into its result channel: (the message itself): "
                "neither code nor a failure",
            ),
        ),
        ("raise_in_run", Failure("run_error", "LookupError: no such loop")),
        ("crash_in_run", Failure("run_error", "it died of SIGSEGV while running")),
    ],
)
@pytest.mark.parametrize("is_ahead", [False, True])
def test_a_failure_is_typed_and_that_of_one_candidate_alone(
    runner: Runner, item: MakeItem, behaviour: str, failure: Failure, is_ahead: bool
) -> None:
    limits = {"build_seconds": 1.0, "memory_bytes": MEMORY}
    bad = item(behaviour, **limits)
    good = item("succeed", name="trial_2", after=[behaviour, is_ahead], **limits)
    if is_ahead:
        assert runner.measure(item("sleep", seconds=0.1, **limits), bad).seconds == 0.5
    assert failure_of(runner.measure(bad, good)) == failure
    assert runner.measure(good).seconds == 0.5
    assert len(children()) == 1


@pytest.mark.parametrize(
    ("behaviour", "goes_on"),
    [
        ("refuse", True),
        ("raise_in_build", True),
        ("crash_in_run", True),
        ("crash_in_build", False),
        ("hang_in_build", False),
        ("allocate_without_end_in_build", False),
    ],
)
def test_what_a_builder_may_not_have_outlived_whole_ends_it(
    runner: Runner, item: MakeItem, behaviour: str, goes_on: bool
) -> None:
    limits = {"build_seconds": 0.4, "memory_bytes": MEMORY}
    before = asked(runner, item, f"before {behaviour}", **limits)
    runner.measure(item(behaviour, **limits))
    after = asked(runner, item, f"after {behaviour}", **limits)
    assert (before[0] == after[0]) is goes_on


def test_the_last_words_are_those_of_the_candidate(runner: Runner, item: MakeItem) -> None:
    runner.measure(item("raise_in_build"))
    failure = runner.measure(item("crash_in_build")).failure
    assert failure is not None
    assert ("in _crash_in_build" in failure.last_words, "LookupError" in failure.last_words) == (True, False)


def test_a_build_that_fails_says_how_long_it_took(runner: Runner, item: MakeItem) -> None:
    result = runner.measure(item("hang_in_build", build_seconds=0.25))
    assert result.failure is not None and result.failure.elapsed is not None
    assert 0.25 <= result.failure.elapsed == result.build_seconds == result.wall_seconds


def test_what_was_built_lately_is_not_built_again(own_runner: Runner, item: MakeItem) -> None:
    first = asked(own_runner, item, "first")
    assert asked(own_runner, item, "second") == (first[0], 2)
    assert asked(own_runner, item, "first") == first
    assert own_runner.measure(item("say_who_built", name="x", number="first")).build_seconds < 0.1


def test_only_the_last_few_are_kept(own_runner: Runner, item: MakeItem) -> None:
    for n in range(KEPT + 1):
        asked(own_runner, item, f"trial_{n}")
    assert asked(own_runner, item, "trial_1")[1] == 2
    assert asked(own_runner, item, "trial_0")[1] == KEPT + 2


def test_other_limits_are_another_build(own_runner: Runner, item: MakeItem) -> None:
    one, other = asked(own_runner, item), asked(own_runner, item, memory_bytes=MEMORY)
    assert one[0] != other[0]


def test_after_many_builds_another_builds(own_runner: Runner, item: MakeItem) -> None:
    builds = [asked(own_runner, item, f"trial_{n}") for n in range(MOST_BUILDS + 1)]
    assert [number for _, number in builds] == [*range(1, MOST_BUILDS + 1), 1]
    assert len({builder for builder, _ in builds}) == 2


def test_one_that_keeps_much_memory_is_replaced(own_runner: Runner, item: MakeItem) -> None:
    builds = [asked(own_runner, item, f"trial_{n}", keeps=100 << 20) for n in range(4)]
    assert [number for _, number in builds] == [1, 2, 3, 1]


def test_what_others_have_left_behind_is_not_taken_from_a_candidates_memory(
    own_runner: Runner, item: MakeItem
) -> None:
    limits = {"memory_bytes": 128 << 20}
    builds = [asked(own_runner, item, f"trial_{n}", keeps=100 << 20, **limits) for n in range(3)]
    assert [number for _, number in builds] == [1, 2, 3]


def test_code_without_end_is_refused(own_runner: Runner, item: MakeItem) -> None:
    failure = failure_of(own_runner.measure(item("succeed", length=33 << 20)))
    words = "its code has 33 MiB, and the limit is 32 MiB"
    assert failure == Failure("build_error", words, float(32 << 20))


@needs_two
def test_the_next_candidate_has_built_before_the_present_one_ends(runner: Runner, item: MakeItem) -> None:
    following = item("say_who_built", name="trial_2", takes=0.1)
    assert runner.measure(item("sleep", seconds=0.5), following).seconds == 0.5
    ended = time.monotonic()
    _, _, _, built, where = told(runner.measure(following))
    assert built < ended
    assert 0 < len(where) < usable_cores()


@needs_two
def test_code_that_waits_for_its_turn_is_not_late(runner: Runner, item: MakeItem) -> None:
    limits = {"build_seconds": 0.3}
    following = item("succeed", name="trial_2", takes=0.1, length=4 << 20, **limits)
    runner.measure(item("sleep", seconds=0.01, **limits), following)
    time.sleep(0.5)
    result = runner.measure(following)
    assert (result.seconds, result.build_seconds < 0.3) == (0.5, True)


def test_what_is_built_ahead_and_not_measured_next_is_in_vain(runner: Runner, item: MakeItem) -> None:
    runner.measure(item("sleep", seconds=0.05), item("hang_in_build", name="trial_2"))
    assert runner.measure(item("succeed", name="trial_3")).seconds == 0.5


def test_on_one_processor_everything_is_built_in_its_turn(item: MakeItem) -> None:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        with Runner("misbehaving:Builds") as runner:
            following = item("say_who_built", name="trial_2")
            runner.measure(item("sleep", seconds=0.1), following)
            ended = time.monotonic()
            assert told(runner.measure(following))[3] > ended
    finally:
        os.sched_setaffinity(0, before)


def test_what_is_built_in_its_turn_may_build_anywhere(runner: Runner, item: MakeItem) -> None:
    runner.measure(item("sleep", seconds=0.2), item("succeed", name="trial_2", number="ahead"))
    where = told(runner.measure(item("say_who_built", name="trial_3", number="in its turn")))[4]
    assert where == sorted(os.sched_getaffinity(0))


def test_a_closed_runner_leaves_no_builder(item: MakeItem) -> None:
    with Runner("misbehaving:Builds") as runner:
        runner.measure(item("succeed"))
        (builder,) = [child for child in servers()[-1].children()]
    assert psutil.wait_procs([builder], timeout=5.0)[1] == []


def test_a_fork_server_that_dies_takes_its_builder_with_it(own_runner: Runner, item: MakeItem) -> None:
    own_runner.measure(item("succeed"))
    left = servers()[-1].children()
    servers()[-1].kill()
    assert psutil.wait_procs(left, timeout=5.0)[1] == []
    assert own_runner.measure(replace(item("succeed"), attempt=2)).seconds == 0.5


def test_sixty_candidates_of_which_a_third_do_not_build_leave_nothing_open(
    runner: Runner, item: MakeItem
) -> None:
    runner.measure(item("succeed"))
    server = servers()[0]
    before = server.num_fds()
    for n in range(20):
        runner.measure(item("succeed", number=n))
        runner.measure(item("crash_in_build"))
        runner.measure(item("succeed", after=n))
    assert (server.num_fds(), len(server.children())) == (before, 1)
