from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import psutil
import pytest
from measuring import MakeItem, failure_of, servers

from tilewright.measure.errors import MeasureError
from tilewright.measure.messages import Failure, MeasureResult
from tilewright.measure.program import ProgramError, load
from tilewright.measure.runner import Runner

MEMORY = 256 << 20


@pytest.fixture
def own_runner() -> Iterator[Runner]:
    """For tests that kill the fork server. It is the last one started, so the last of `servers()`."""
    with Runner("misbehaving:behaves") as runner:
        yield runner


def test_all_of_these_candidates_ran_under_one_fork_server(runner: Runner, item: MakeItem) -> None:
    (before,) = servers()
    for behaviour in ("hang_in_run", "crash_in_build", "raise_in_run", "succeed"):
        runner.measure(item(behaviour, run_seconds=0.1))
    assert servers() == [before]


def test_an_item_may_be_refused_before_anything_is_forked(item: MakeItem) -> None:
    with Runner("misbehaving:Refuses") as runner:
        result = runner.measure(item("succeed"))
    failure = Failure("build_error", "/blocks/0: no such block", elapsed=0.0)
    assert result == MeasureResult("trial_1", 1, failure=failure)


def test_a_fork_server_that_dies_costs_the_trial_and_is_replaced(own_runner: Runner, item: MakeItem) -> None:
    server = servers()[-1]
    threading.Timer(0.2, server.kill).start()
    result = own_runner.measure(item("hang_in_run", run_seconds=30.0))
    message = "the measuring process was lost: it died of SIGKILL"
    assert failure_of(result) == Failure("worker_lost", message)
    assert own_runner.measure(item("succeed")).seconds == 0.5


def test_the_candidate_of_a_fork_server_that_dies_dies_with_it(own_runner: Runner, item: MakeItem) -> None:
    server = servers()[-1]
    children: list[psutil.Process] = []

    def kill() -> None:
        children.extend(server.children())
        server.kill()

    threading.Timer(0.2, kill).start()
    own_runner.measure(item("hang_in_run", run_seconds=30.0))
    assert len(children) == 1
    assert psutil.wait_procs(children, timeout=5.0)[1] == []


def test_a_fork_server_that_died_between_two_trials_costs_nothing(own_runner: Runner, item: MakeItem) -> None:
    server = servers()[-1]
    server.kill()
    server.wait()
    assert own_runner.measure(item("succeed")).seconds == 0.5


def test_a_bug_in_the_fork_server_is_told_in_its_own_words(item: MakeItem) -> None:
    with Runner("misbehaving:CrashesInTheServer") as runner:
        result = runner.measure(item("succeed"))
    message = "the measuring process was lost: it ended with status 1: ZeroDivisionError: in the fork server"
    assert failure_of(result) == Failure("worker_lost", message)


def test_a_fork_server_that_does_not_answer_is_given_up(item: MakeItem) -> None:
    with Runner("misbehaving:HangsInTheServer", prepare_seconds=-6.8) as runner:
        result = runner.measure(item("succeed", build_seconds=1.0, run_seconds=1.0))
    message = "the measuring process was lost: it did not answer within 0.2 s"
    assert failure_of(result) == Failure("worker_lost", message)


def test_a_runner_that_cannot_start_says_why() -> None:
    with pytest.raises(MeasureError) as caught, Runner("misbehaving:does_not_start"):
        pass
    first, *_, last = str(caught.value).splitlines()
    assert first == (
        "the measuring process does not start: it ended with status 1: ImportError: libtensor.so is missing"
    )
    assert last == "ImportError: libtensor.so is missing"


def test_a_cancelled_item_ends_at_once(own_runner: Runner, item: MakeItem) -> None:
    threading.Timer(0.2, own_runner.cancel, ["trial_1"]).start()
    result = own_runner.measure(item("hang_in_run", run_seconds=30.0))
    assert failure_of(result) == Failure("cancelled", "it was cancelled while it was measured")


def test_cancelling_another_item_disturbs_nothing(runner: Runner, item: MakeItem) -> None:
    threading.Timer(0.1, runner.cancel, ["trial_2"]).start()
    assert runner.measure(item("sleep", seconds=0.3)).seconds == 0.5


def test_after_a_cancelled_item_the_next_is_measured(own_runner: Runner, item: MakeItem) -> None:
    threading.Timer(0.2, own_runner.cancel).start()
    own_runner.measure(item("hang_in_run", run_seconds=30.0))
    assert own_runner.measure(item("succeed")).seconds == 0.5


def test_resizing_the_terminal_disturbs_no_trial(runner: Runner, item: MakeItem) -> None:
    over = threading.Event()

    def resize() -> None:
        while not over.wait(0.02):
            for process in (os.getpid(), *(s.pid for s in servers())):
                os.kill(process, signal.SIGWINCH)

    before = signal.signal(signal.SIGWINCH, lambda *_: None)
    thread = threading.Thread(target=resize)
    thread.start()
    try:
        seconds = [runner.measure(item("sleep", seconds=0.05)).seconds for _ in range(10)]
    finally:
        over.set()
        thread.join()
        signal.signal(signal.SIGWINCH, before)
    assert seconds == [0.5] * 10


def test_a_closed_runner_leaves_no_process(item: MakeItem) -> None:
    before = servers()
    with Runner("misbehaving:behaves") as runner:
        runner.measure(item("succeed"))
    assert servers() == before


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("misbehaving", "expected module:attribute, got 'misbehaving'"),
        ("misbehaving:nothing", "module misbehaving has no nothing"),
    ],
)
def test_a_program_that_is_not_there_is_refused_by_name(name: str, words: str) -> None:
    with pytest.raises(ProgramError) as caught:
        load(name)
    assert str(caught.value) == words
