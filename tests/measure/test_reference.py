"""References that are too much for the machine end as failures of their workload, not of the machine."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.random  # children of another user could not read it
import psutil
import pytest
from fake_source import wait_for
from measuring import failure_of, servers

from tilewright import te
from tilewright.compiler.interpret import Footprint
from tilewright.compiler.ir import PrimFunc, to_json
from tilewright.compiler.schedule import Schedule
from tilewright.compiler.target import Target
from tilewright.measure import reference
from tilewright.measure.candidate import Candidate
from tilewright.measure.machine import memory_of_this_machine
from tilewright.measure.messages import Failure, Limits, MeasureInput
from tilewright.measure.program import Split
from tilewright.measure.reference import Reference, allowance, confined
from tilewright.measure.runner import Runner

HOPELESS = "no candidate can be measured: the reference of the workload "


def matmul(m: int, n: int, k: int) -> PrimFunc:
    a = te.placeholder((m, k), "float32", name="A")
    b = te.placeholder((k, n), "float32", name="B")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    return te.create_prim_func([a, b, c], name="matmul")


def item(func: PrimFunc, limits: Limits | None = None, seed: int = 3) -> MeasureInput:
    target, trace = Target.parse("llvm"), Schedule(func).trace
    return MeasureInput(
        "trial_1", 1, to_json(func), target.to_json(), trace.to_json(), seed, limits or Limits()
    )


HUGE = matmul(20_000, 20_000, 20_000)
# Takes seconds.
LONG = matmul(3_000, 3_000, 3_000)


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner() as runner:
        yield runner


@pytest.fixture
def small_machine(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Makes half of the machine so many bytes, whatever a reference is reckoned to need."""

    def shrink(half: int) -> None:
        monkeypatch.setattr(reference, "memory_of_this_machine", lambda: 2 * half)
        monkeypatch.setattr(reference, "footprint", lambda func: Footprint(0, 0))

    return shrink


def described(found: Reference | Failure) -> tuple[Any, ...]:
    assert isinstance(found, Failure)
    return found.kind, found.message, found.limit, found.of_workload


def test_a_workload_whose_reference_is_too_large_fails_at_once_naming_need_and_limit(runner: Runner) -> None:
    begun = time.monotonic()
    failure = failure_of(runner.measure(item(HUGE)))
    assert failure == Failure(
        "build_error",
        HOPELESS + "needs 30.11 GiB, and the limit is 2 GiB",
        limit=float(2 << 30),
        of_workload=True,
    )
    assert time.monotonic() - begun < 5.0


def test_a_reference_that_is_too_large_does_not_cost_the_fork_server(runner: Runner) -> None:
    (before,) = servers()
    runner.measure(item(HUGE))
    assert (runner.measure(item(matmul(8, 8, 8))).failure, servers()) == (None, [before])


def test_a_reference_that_needs_more_than_was_reckoned_meets_a_hard_limit(
    small_machine: Callable[[int], None],
) -> None:
    small_machine(16 << 20)
    assert described(confined(item(matmul(4096, 4096, 8)))) == (
        "build_error",
        HOPELESS + "needs more than was reckoned, and the limit is 16 MiB",
        float(16 << 20),
        True,
    )


def test_a_reference_that_takes_too_long_is_a_run_timeout_that_names_the_limit() -> None:
    assert described(confined(item(LONG), seconds=0.2)) == (
        "run_timeout",
        HOPELESS + "takes longer than its limit of 0.2 s",
        0.2,
        True,
    )


def test_a_reference_in_a_child_is_what_it_is_without_one() -> None:
    func = matmul(33, 17, 65)
    found, plain = confined(item(func)), Reference.of(to_json(func), 3)
    assert isinstance(found, Reference)
    got, want = ([*of.arrays, *of.expected.outputs, *of.expected.tolerances] for of in (found, plain))
    assert [(a.dtype, a.shape, a.tobytes()) for a in got] == [(a.dtype, a.shape, a.tobytes()) for a in want]
    assert (found.expected.names, found.expected.positions) == (("C",), (2,))


def test_what_one_candidate_writes_into_a_reference_no_other_sees() -> None:
    found = confined(item(matmul(8, 8, 8)))
    assert isinstance(found, Reference)
    before = found.arrays[0].copy()
    pid = os.fork()
    if pid == 0:
        found.arrays[0][...] = 7.0
        os._exit(0)
    os.waitpid(pid, 0)
    assert np.array_equal(found.arrays[0], before)


def test_a_child_that_died_is_told_and_is_not_the_workloads_own_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reference, "expected", lambda func, arrays: os.kill(os.getpid(), 9))
    assert described(confined(item(matmul(8, 8, 8)))) == (
        "build_error",
        "the reference of the workload was not computed: it died of SIGKILL while building, perhaps by the "
        "system for want of memory",
        None,
        False,
    )


def test_a_workload_that_has_no_reference_is_not_tried_again(
    small_machine: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    small_machine(16 << 20)
    program, one = Candidate(), item(matmul(4096, 4096, 8))
    first = program.prepare(one)
    monkeypatch.setattr("tilewright.measure.candidate.confined", lambda item: pytest.fail("tried again"))
    second = program.prepare(one)
    assert isinstance(first, Failure) and isinstance(second, Failure)
    assert (second.message, second.elapsed) == (first.message, 0.0)


def test_a_failure_that_was_not_the_workloads_own_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    program, one = Candidate(), item(matmul(8, 8, 8))
    with monkeypatch.context() as patched:
        patched.setattr(reference, "expected", lambda func, arrays: os.kill(os.getpid(), 9))
        assert isinstance(program.prepare(one), Failure)
    assert isinstance(program.prepare(one), Split)


def test_references_are_forgotten_when_they_are_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright.measure.candidate._KEPT_BYTES", 100_000)
    program = Candidate()
    computed: list[int] = []

    def noting(item: MeasureInput) -> Reference | Failure:
        computed.append(item.input_seed)
        return confined(item)

    monkeypatch.setattr("tilewright.measure.candidate.confined", noting)
    for seed in (1, 2, 2, 1):
        program.prepare(item(matmul(64, 64, 64), seed=seed))
    assert computed == [1, 2, 1]


def test_killing_the_fork_server_ends_the_child_that_computes_a_reference() -> None:
    with Runner() as runner:
        server = servers()[-1]
        children: list[psutil.Process] = []

        def cancel() -> None:
            assert wait_for(lambda: bool(server.children()))
            children.extend(server.children())
            runner.cancel()

        thread = threading.Thread(target=cancel)
        thread.start()
        result = runner.measure(item(LONG))
        thread.join()
    assert (failure_of(result).kind, len(children)) == ("cancelled", 1)
    assert psutil.wait_procs(children, timeout=5.0)[1] == []


@pytest.mark.parametrize(
    ("candidate", "machine", "want"),
    [(1, 64, 2), (3, 64, 3), (3, 4, 2)],
    ids=["at least the default", "as much as a candidate", "half of a small machine"],
)
def test_a_reference_may_take_what_a_candidate_may(
    candidate: int, machine: int, want: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reference, "memory_of_this_machine", lambda: machine << 30)
    assert allowance(Limits(memory_bytes=candidate << 30)) == want << 30


@pytest.mark.parametrize(
    ("text", "limited"), [("1048576\n", True), ("max\n", False), (None, False)], ids=["limit", "max", "none"]
)
def test_a_control_group_is_the_machine_that_counts(tmp_path: Path, text: str | None, limited: bool) -> None:
    file = tmp_path / "memory.max"
    if text is not None:
        file.write_text(text)
    assert (memory_of_this_machine(file) == 1 << 20) is limited
