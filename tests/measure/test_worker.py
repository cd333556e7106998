from __future__ import annotations

import pytest
from fake_source import FakeSource, success, trial
from worker_bench import Bench

from tilewright.measure.messages import (
    Failure,
    LeaseUpdate,
    MeasureInput,
    MeasureResult,
)
from tilewright.measure.worker import Exit


def test_items_are_started_measured_and_settled_one_by_one() -> None:
    bench = Bench(FakeSource([[trial("a"), trial("b")], [trial("c")]])).run()
    assert bench.source.calls == [
        ("register",),
        ("lease",),
        ("start", "a"),
        ("settle", "a"),
        ("start", "b"),
        ("settle", "b"),
        ("lease",),
        ("start", "c"),
        ("settle", "c"),
        ("lease",),
        ("leave",),
    ]


def test_a_worker_that_drained_says_so_and_ends_with_0() -> None:
    bench = Bench(FakeSource([[trial("a")]])).run()
    assert (bench.exit, bench.said) == (Exit.DRAINED, ["attached as worker_1", "a: 500 ms", "drained"])


def test_what_was_measured_is_what_is_settled() -> None:
    bench = Bench(FakeSource([[trial("a")]])).run()
    assert bench.source.settled == [success(trial("a"))]


def test_an_item_no_longer_wanted_is_not_started() -> None:
    source = FakeSource([[trial("a"), trial("b"), trial("c")]], updates=[LeaseUpdate(("b",))])
    assert Bench(source).run().runner.measured == ["a", "c"]


def test_the_runner_is_told_which_item_of_the_lease_comes_next() -> None:
    source = FakeSource([[trial("a"), trial("b"), trial("c"), trial("d")]], updates=[LeaseUpdate(("c",))])
    runner = Bench(source).run().runner
    assert (runner.measured, runner.ahead) == (["a", "b", "d"], ["b", "d", None])


def test_an_item_no_longer_wanted_is_cancelled_while_it_is_measured_and_not_settled() -> None:
    source = FakeSource([[trial("a"), trial("b")]], renewals=[LeaseUpdate(("a",))], renew_seconds=0.01)
    bench = Bench(source)

    def is_cancelled(item: MeasureInput) -> MeasureResult:
        source.renewed.wait(5.0)
        return MeasureResult.failed(item, Failure("cancelled", "it was cancelled"))

    bench.runner.does["a"] = is_cancelled
    bench.run()
    assert (bench.runner.cancelled, [r.item for r in source.settled]) == (["a"], ["b"])


def test_a_service_that_drains_its_workers_gets_the_rest_of_the_lease_back() -> None:
    source = FakeSource([[trial("a"), trial("b")], [trial("c")]], updates=[LeaseUpdate(drain=True)])
    bench = Bench(source).run()
    assert (bench.exit, source.calls[3:]) == (
        Exit.DRAINED,
        [("settle", "a"), ("release", "lease_1"), ("leave",)],
    )


def test_a_signal_lets_the_current_item_end_and_releases_the_rest() -> None:
    bench = Bench(FakeSource([[trial("a"), trial("b")]]))

    def interrupted(item: MeasureInput) -> MeasureResult:
        bench.worker.interrupt()
        return success(item)

    bench.runner.does["a"] = interrupted
    bench.run()
    assert (bench.exit, bench.source.calls[2:]) == (
        Exit.DRAINED,
        [("start", "a"), ("settle", "a"), ("release", "lease_1"), ("leave",)],
    )


def test_a_second_signal_gives_up_the_current_item_and_releases_it_too() -> None:
    bench = Bench(FakeSource([[trial("a")]]))

    def interrupted_twice(item: MeasureInput) -> MeasureResult:
        bench.worker.interrupt()
        bench.worker.interrupt()
        return MeasureResult.failed(item, Failure("cancelled", "it was cancelled"))

    bench.runner.does["a"] = interrupted_twice
    bench.run()
    assert (bench.exit, bench.runner.cancelled, bench.source.calls[2:]) == (
        Exit.DRAINED,
        [None],
        [("start", "a"), ("release", "lease_1"), ("leave",)],
    )


def test_a_signal_during_the_long_poll_ends_the_worker_at_once() -> None:
    bench = Bench(FakeSource())
    bench.source.when_empty = lambda: (bench.worker.interrupt(), pytest.fail("the poll went on"))[1]
    assert bench.run().exit == Exit.DRAINED


def test_a_lease_is_renewed_while_an_item_is_measured() -> None:
    source = FakeSource([[trial("a")]], renew_seconds=0.01)
    bench = Bench(source)

    def wait_for_a_renewal(item: MeasureInput) -> MeasureResult:
        return success(item) if source.renewed.wait(5.0) else pytest.fail("never renewed")

    bench.runner.does["a"] = wait_for_a_renewal
    assert bench.run().exit == Exit.DRAINED


def test_a_source_that_knows_no_leaving_is_left_without_a_word() -> None:
    source = FakeSource()
    source.leave = None  # type: ignore[assignment,method-assign]
    assert Bench(source).run().said == ["attached as worker_1", "drained"]
