from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from measuring import failure_of

from tilewright import te, topi
from tilewright.compiler.ir import PrimFunc, to_json
from tilewright.compiler.runtime import ParamInfo
from tilewright.compiler.schedule import Schedule
from tilewright.compiler.space import default_schedule
from tilewright.compiler.target import Target
from tilewright.compiler.target.hardware import usable_cores
from tilewright.measure.checked_timing import check_and_time
from tilewright.measure.messages import Limits, MeasureInput, MeasureResult
from tilewright.measure.reference import Reference
from tilewright.measure.runner import Runner

Arrays = tuple[np.ndarray[Any, Any], ...]
PARAMS = (
    ParamInfo("A", "float32", (7, 5), False),
    ParamInfo("B", "float32", (5, 9), False),
    ParamInfo("C", "float32", (7, 9), True),
)


def matmul(m: int = 7, n: int = 9, k: int = 5) -> PrimFunc:
    a = te.placeholder((m, k), "float32", name="A")
    b = te.placeholder((k, n), "float32", name="B")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    return te.create_prim_func([a, b, c], name="matmul")


def item(func: PrimFunc, schedule: Schedule | None = None, **more: Any) -> MeasureInput:
    target = Target.parse("llvm")
    trace = (schedule or Schedule(func)).trace
    return MeasureInput("trial_1", 1, to_json(func), target.to_json(), trace.to_json(), 3, Limits(), **more)


@dataclass
class FakeKernel:
    """A kernel in Python, which is told how often it was called before."""

    body: Callable[[int, Arrays], None]
    params: tuple[ParamInfo, ...] = PARAMS
    calls: int = field(default=0)

    def bind(self, *arrays: np.ndarray[Any, Any]) -> Callable[[], None]:
        def call() -> None:
            self.body(self.calls, arrays)
            self.calls += 1

        return call


def right(calls: int, arrays: Arrays) -> None:
    a, b, c = arrays
    np.matmul(a, b, out=c)


def drops_the_tail_rows(calls: int, arrays: Arrays) -> None:
    a, b, c = arrays
    np.matmul(a[:4], b, out=c[:4])


def adds_to_its_output(calls: int, arrays: Arrays) -> None:
    a, b, c = arrays
    c += a @ b


def writes_into_an_input(calls: int, arrays: Arrays) -> None:
    right(calls, arrays)
    arrays[1][2, 3] = 0.0


def changes_later(calls: int, arrays: Arrays) -> None:
    right(calls, arrays)
    if calls > 0:
        arrays[2][0, 0] = 0.0


def result_of(body: Callable[[int, Arrays], None], **more: Any) -> MeasureResult:
    func = matmul()
    return check_and_time(item(func, **more), FakeKernel(body), Reference.of(to_json(func), 3))


def test_a_right_kernel_is_timed_by_the_least_of_many_samples() -> None:
    result = result_of(right)
    assert (len(result.samples) >= 3, result.seconds, result.failure) == (True, min(result.samples), None)


def test_a_result_says_how_it_was_sampled() -> None:
    result = result_of(right)
    assert result.cache == "hot"
    # Samples of at least 2 ms: so many calls were made in the last one.
    assert result.calls * max(result.samples) >= 0.002


def test_the_error_found_is_told_in_units_of_the_tolerance() -> None:
    error = result_of(right).error
    assert error is not None and 0.0 <= error <= 1.0


def test_a_kernel_clearly_slower_than_the_best_is_censored() -> None:
    result = result_of(right, best_seconds=1e-9)
    assert (result.censored, len(result.samples)) == (True, 1)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (drops_the_tail_rows, "output 'C' is wrong at [4, 0]: got nan"),
        (adds_to_its_output, "output 'C' is wrong at [0, 0]: got nan"),
        (writes_into_an_input, "the kernel wrote into its input B"),
        (changes_later, "output C differs between the first call and later ones"),
    ],
)
def test_a_wrong_kernel_has_no_time_however_fast_it_is(
    body: Callable[[int, Arrays], None], words: str
) -> None:
    result = result_of(body)
    assert result.failure is not None and result.seconds is None
    assert (result.failure.kind, result.failure.message[: len(words)]) == ("wrong_output", words)


def test_a_wrong_kernel_is_not_called_twice() -> None:
    func, kernel = matmul(), FakeKernel(drops_the_tail_rows)
    check_and_time(item(func), kernel, Reference.of(to_json(func), 3))
    assert kernel.calls == 1


def test_no_kernel_touches_the_reference() -> None:
    reference = Reference.of(to_json(matmul()), 3)
    before = [array.copy() for array in reference.arrays]
    check_and_time(item(matmul()), FakeKernel(writes_into_an_input), reference)
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(before, reference.arrays, strict=True))


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner() as runner:
        yield runner


def test_the_unscheduled_loop_nest_is_built_checked_and_timed(runner: Runner) -> None:
    result = runner.measure(item(matmul()))
    assert (result.failure, result.seconds) == (None, min(result.samples))
    assert len(result.samples) >= 3


def test_a_default_schedule_is_built_checked_and_timed(runner: Runner) -> None:
    func = matmul(33, 65, 17)
    result = runner.measure(item(func, default_schedule(func, Target.parse("llvm"))))
    assert (result.failure, result.seconds) == (None, min(result.samples))
    assert len(result.samples) >= 3


def test_a_kernel_with_packed_constants_is_built_checked_and_timed(runner: Runner) -> None:
    func = topi.create({"op": "dense", "m": 9, "n": 40, "k": 17, "bias": True, "constant_weights": True})
    schedule = default_schedule(func, Target.parse("llvm"))
    steps = [step["do"] for step in schedule.trace.to_json()["steps"]]
    result = runner.measure(item(func, schedule))
    assert (steps.count("compute_ahead"), result.failure, len(result.samples) >= 3) == (1, None, True)


def test_two_measurements_of_a_kernel_agree(runner: Runner) -> None:
    func = matmul(64, 64, 64)
    one = item(func, default_schedule(func, Target.parse("llvm")))
    first, second = runner.measure(one).seconds, runner.measure(one).seconds
    assert first is not None and second == pytest.approx(first, rel=0.25)


def in_rows(m: int, n: int, k: int) -> Schedule:
    schedule = Schedule(matmul(m, n, k))
    schedule.parallel(schedule.get_loops(schedule.get_block("C"))[0])
    return schedule


@pytest.mark.skipif(usable_cores() < 2, reason="needs two cores")
def test_a_kernel_on_two_threads_is_built_checked_and_timed(runner: Runner) -> None:
    schedule = in_rows(33, 65, 17)
    two = Target.parse("llvm -num-threads=2").to_json()
    result = runner.measure(replace(item(matmul(33, 65, 17), schedule), target=two))
    assert (result.failure, result.seconds) == (None, min(result.samples))


def test_a_kernel_for_more_threads_than_cores_is_a_build_error(runner: Runner) -> None:
    many = Target.parse("llvm -num-threads=512").to_json()
    failure = failure_of(runner.measure(replace(item(matmul()), target=many)))
    reason = f"this worker may use {usable_cores()} cores, so that its times would mean nothing"
    assert (failure.kind, failure.message) == ("build_error", f"num-threads=512: {reason}")


def test_a_kernel_many_times_slower_than_the_best_is_stopped_in_its_first_call(runner: Runner) -> None:
    func = matmul(600, 600, 600)
    result = runner.measure(item(func, best_seconds=1e-9))
    assert (result.failure, result.censored, result.error) == (None, True, None)
    assert (result.seconds, result.samples) == (0.1, (0.1,))


def test_a_kernel_that_is_slow_is_run_to_its_end_where_there_is_no_race(runner: Runner) -> None:
    result = runner.measure(item(matmul(150, 150, 150)))
    assert (result.failure, result.censored, result.error is None) == (None, False, False)


def test_a_trace_that_is_refused_on_replay_is_a_constraint(runner: Runner) -> None:
    func = matmul()
    schedule = Schedule(func)
    schedule.vectorize(schedule.get_loops(schedule.get_block("C"))[1])
    steps = [
        {**step, "loop": step["loop"].replace("1", "2")} if step["do"] == "vectorize" else step
        for step in schedule.trace.to_json()["steps"]
    ]
    one = replace(item(func), trace={**schedule.trace.to_json(), "steps": steps})
    failure = failure_of(runner.measure(one))
    assert (failure.kind, failure.message.splitlines()[0]) == (
        "constraint",
        "vectorize: loop 'k' carries a reduction into C and cannot be a vector loop",
    )


def test_a_trace_that_is_none_is_a_build_error(runner: Runner) -> None:
    one = replace(item(matmul()), trace={"version": 1, "steps": [{"do": "explode"}]})
    failure = failure_of(runner.measure(one))
    assert (failure.kind, failure.message.partition(";")[0]) == ("build_error", "unknown step 'explode'")


def test_a_workload_that_is_none_is_a_build_error(runner: Runner) -> None:
    failure = failure_of(runner.measure(replace(item(matmul()), workload={"version": 1})))
    assert failure.kind == "build_error"


def test_a_target_that_is_none_is_a_build_error(runner: Runner) -> None:
    failure = failure_of(runner.measure(replace(item(matmul()), target={"kind": "abacus"})))
    assert (failure.kind, "abacus" in failure.message) == ("build_error", True)


def test_a_target_that_this_machine_cannot_run_is_a_build_error(runner: Runner) -> None:
    target = Target.parse("llvm -mtriple=riscv64-linux-gnu").to_json()
    failure = failure_of(runner.measure(replace(item(matmul()), target=target)))
    assert (failure.kind, failure.message) == (
        "build_error",
        "code for generic-rv64 cannot run on this machine, which lacks riscv64",
    )


def test_the_memory_limit_holds_for_the_real_thing(runner: Runner) -> None:
    one = replace(item(matmul(512, 512, 8)), limits=Limits(memory_bytes=1 << 20))
    failure = failure_of(runner.measure(one))
    assert failure.message == "it needed more than its memory limit of 1 MiB"
