from __future__ import annotations

import time

import pytest

from tilewright.measure.checkup import Checkup
from tilewright.measure.golden import BaselineKernel, golden_items
from tilewright.measure.health_messages import HealthPlan
from tilewright.measure.messages import MeasureInput, MeasureResult
from tilewright.measure.runner import Runner


@pytest.fixture(scope="module")
def runner() -> Runner:
    with Runner() as runner:
        yield runner  # type: ignore[misc]


def test_golden_kernels_are_the_same_at_every_start() -> None:
    assert golden_items() == golden_items()
    assert list(golden_items()) == ["compute", "memory"]


def test_golden_kernels_run_right_on_this_machine_and_set_a_norm(runner: Runner) -> None:
    checkup = Checkup(golden_items, runner.measure, time.monotonic, HealthPlan(processes=2))
    report = checkup.attach()
    assert report is not None
    assert (report.occasion, [part.part for part in report.parts]) == ("attach", ["compute", "memory"])
    assert report.parts[1].seconds > report.parts[0].seconds > 0


def test_the_reading_of_a_baseline_is_short() -> None:
    """Two of them stand around each candidate, whose trial takes 60 ms or more: 5 % of that are 3 ms."""
    kernel = BaselineKernel()
    spent = []
    for _ in range(20):
        start = time.thread_time()
        assert kernel.seconds() is not None
        spent.append(time.thread_time() - start)
    assert min(spent) < 0.0015


def test_a_clock_that_stands_still_gives_no_baseline() -> None:
    assert BaselineKernel().seconds(lambda: 1.0) is None


def test_every_candidate_stands_between_two_baselines(runner: Runner) -> None:
    result = runner.measure(golden_items()["compute"])
    assert result.failure is None and len(result.baseline) == 2
    # The candidate is the baseline's own kernel here.
    assert 0.5 < result.seconds / min(result.baseline) < 2.0  # type: ignore[operator]
    assert MeasureResult.from_json(result.to_json()) == result


def test_a_machine_without_code_is_reported_and_not_the_end_of_a_worker() -> None:
    from tilewright.compiler.target import TargetError

    def none() -> dict[str, MeasureInput]:
        raise TargetError("mcpu=host: no code generator for 'vax'")

    checkup = Checkup(none, lambda item: pytest.fail("measured"), time.monotonic, HealthPlan())  # type: ignore[arg-type]
    report = checkup.attach()
    assert report is not None
    assert (report.verdict, report.message) == (
        "failed",
        "no golden kernel can be made for this machine: mcpu=host: no code generator for 'vax'",
    )
