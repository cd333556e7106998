"""A worker that checks itself, on the bench: golden kernels take what the test says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fake_source import FakeSource, success, trial
from worker_bench import Bench

from tilewright.measure.health_messages import HealthPlan
from tilewright.measure.messages import Failure, FailureKind, MeasureInput, MeasureResult

PLAN = HealthPlan(every=2, processes=5, drift=0.03, interval_seconds=60.0)


def bench_of(*names: str, plan: HealthPlan | None = PLAN, compute: Iterator[float] | None = None) -> Bench:
    """A worker that is granted these items in one lease; its computing golden kernel takes the given seconds
    one after another, then 1."""
    bench = Bench(FakeSource([[trial(name) for name in names]] if names else [], plan=plan))
    seconds = compute if compute is not None else iter(())

    def compute_part(item: MeasureInput) -> MeasureResult:
        now = next(seconds, 1.0)
        return MeasureResult(item.item, item.attempt, now, (now,))

    bench.runner.does["golden:compute"] = compute_part
    return bench


def reports(bench: Bench) -> list[tuple[str, ...]]:
    return [call[1:] for call in bench.source.calls if call[0] == "health"]


def fails(kind: FailureKind, message: str = "it failed") -> object:
    return lambda item: MeasureResult.failed(item, Failure(kind, message))


def test_a_worker_measures_golden_kernels_five_times_before_its_first_lease() -> None:
    bench = bench_of().run()
    assert bench.runner.measured == ["golden:compute", "golden:memory"] * 5
    assert bench.source.calls == [("register",), ("health", "attach", "healthy"), ("lease",), ("leave",)]


def test_a_service_without_a_plan_gets_no_checks() -> None:
    bench = bench_of("a", plan=None).run()
    assert (bench.runner.measured, reports(bench)) == (["a"], [])


def test_a_plan_without_processes_asks_for_no_checks() -> None:
    assert bench_of("a", plan=HealthPlan(processes=0)).run().runner.measured == ["a"]


def test_every_so_many_items_the_golden_kernels_are_measured_in_three_processes() -> None:
    bench = bench_of("a", "b", "c", "d", "e").run()
    golden = ["golden:compute", "golden:memory"]
    assert bench.runner.measured[10:] == ["a", "b", *golden * 3, "c", "d", *golden * 3, "e"]
    assert reports(bench) == [("attach", "healthy"), ("periodic", "healthy"), ("periodic", "healthy")]


@pytest.mark.parametrize("kind", ["run_error", "run_timeout", "build_timeout", "worker_lost", "wrong_output"])
def test_after_an_error_that_may_be_the_devices_it_is_looked_at(kind: FailureKind) -> None:
    bench = bench_of("a", plan=HealthPlan(every=100))
    bench.runner.does["a"] = fails(kind)  # type: ignore[assignment]
    assert reports(bench.run()) == [("attach", "healthy"), ("after_error", "healthy")]


@pytest.mark.parametrize("kind", ["build_error", "constraint"])
def test_a_candidate_that_does_not_build_says_nothing_of_the_device(kind: FailureKind) -> None:
    bench = bench_of("a", plan=HealthPlan(every=100))
    bench.runner.does["a"] = fails(kind)  # type: ignore[assignment]
    assert reports(bench.run()) == [("attach", "healthy")]


def slow_after(good: int) -> Iterator[float]:
    yield from [1.0] * good
    while True:
        yield 1.2


def test_a_drift_twice_in_a_row_ends_the_leases_of_a_worker() -> None:
    bench = bench_of("a", "b", "c", "d", "e", compute=slow_after(5)).run()
    assert [name for name in bench.runner.measured if len(name) == 1] == ["a", "b", "c"]
    assert reports(bench) == [("attach", "healthy"), ("periodic", "suspect"), ("periodic", "drifted")]
    assert ("release", "lease_1") in bench.source.calls
    assert bench.said[-3:] == [
        "golden kernel: compute takes 1.2 s, 20.0% more than the 1 s at attach, twice in a row; the limit is "
        "3.0%",
        "in quarantine, until it is released: ",
        "drained",
    ]


def test_a_suspicion_is_settled_after_the_next_item_with_as_many_processes_as_at_attach() -> None:
    seconds = iter([1.0] * 5 + [1.2] * 3)
    bench = bench_of("a", "b", "c", "d", compute=seconds).run()
    golden = ["golden:compute", "golden:memory"]
    assert bench.runner.measured[10:] == ["a", "b", *golden * 3, "c", *golden * 5, "d"]
    assert [verdict for _, verdict in reports(bench)] == ["healthy", "suspect", "healthy"]


def test_a_golden_kernel_with_a_wrong_output_quarantines_at_once() -> None:
    bench = bench_of("a", "b", "c")
    checks = iter([success] * 5)
    wrong = fails("wrong_output", "3 elements differ")
    bench.runner.does["golden:memory"] = lambda item: next(checks, wrong)(item)  # type: ignore[operator]
    bench.run()
    assert reports(bench) == [("attach", "healthy"), ("periodic", "failed")]
    assert bench.source.reports[-1].message == "memory failed: wrong_output: 3 elements differ"


def test_a_measuring_process_that_was_lost_once_is_an_accident() -> None:
    bench = bench_of("a", plan=PLAN)
    results = iter([fails("worker_lost")])
    bench.runner.does["golden:memory"] = lambda item: next(results, success)(item)  # type: ignore[operator]
    assert reports(bench.run()) == [("attach", "healthy")]


def test_a_worker_in_quarantine_looks_at_itself_every_interval_and_says_when_it_is_well() -> None:
    bench = bench_of(compute=iter([1.0] * 5 + [1.2] * 5 + [1.0] * 5))
    polls = iter(range(400))
    bench.source.states = ["quarantined"] * 3
    bench.source.when_empty = lambda: (
        bench.worker.interrupt() if next(polls) == 399 else bench.time.sleep(0.2)
    )
    bench.run()
    assert reports(bench) == [("attach", "healthy"), ("quarantined", "drifted"), ("quarantined", "healthy")]


def test_a_worker_that_is_released_sets_a_new_norm_before_it_measures() -> None:
    bench = bench_of("a", "b", "c", "d", compute=slow_after(5))
    bench.source.leases.append([trial("x")])
    bench.run()
    assert [name for name in bench.runner.measured if len(name) == 1] == ["a", "b", "c", "x"]
    assert reports(bench)[-2:] == [("periodic", "drifted"), ("attach", "healthy")]


def test_a_worker_that_attaches_again_brings_its_last_report() -> None:
    bench = bench_of("a")
    bench.source.faults["lease"] = [RuntimeError("the service has forgotten it")]
    bench.run()
    assert [hello.health and hello.health.verdict for hello in bench.source.hellos] == [None, "healthy"]
    assert [verdict for _, verdict in reports(bench)] == ["healthy"]


def result(name: str, baseline: float, seconds: float = 0.5) -> MeasureResult:
    return MeasureResult(name, 1, seconds, (seconds,), baseline=(baseline, baseline))


def test_an_item_whose_baseline_moved_is_measured_again_and_never_averaged() -> None:
    bench = bench_of("a", "b", plan=None)
    second = iter([result("b", 1.3, 0.65), result("b", 1.0, 0.5)])
    bench.runner.does = {"a": lambda _: result("a", 1.0), "b": lambda _: next(second)}
    bench.run()
    assert (bench.runner.measured, bench.source.settled) == (
        ["a", "b", "b"],
        [result("a", 1.0), result("b", 1.0)],
    )


def test_a_device_that_stays_slower_has_its_results_marked_as_disturbed() -> None:
    bench = bench_of("a", "b", "c", plan=None)
    bench.runner.does = {
        name: lambda item, slow=slow: result(item.item, slow)  # type: ignore[misc]
        for name, slow in {"a": 1.0, "b": 1.3, "c": 1.3}.items()
    }
    bench.run()
    assert bench.runner.measured == ["a", "b", "b", "c"]
    assert [(r.disturbed, r.disturbance) for r in bench.source.settled] == [
        (False, ""),
        (True, "the baseline is +30% from the batch's first"),
        (True, "the baseline is +30% from the batch's first"),
    ]
