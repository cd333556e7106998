from __future__ import annotations

import threading
from dataclasses import replace
from itertools import pairwise

import pytest
from fake_source import FakeRunner, FakeSource, success, trial, wait_for
from worker_bench import UNREACHABLE, Bench

from tilewright.measure.errors import MeasureError
from tilewright.measure.messages import (
    Failure,
    LeaseLost,
    LeaseUpdate,
    MeasureInput,
    MeasureResult,
    NameRetired,
    NotATilewright,
    SourceRefused,
    Superseded,
    Unauthorized,
    VersionRefused,
)
from tilewright.measure.worker import Exit


def _measure_until_renewing_is_over(bench: Bench) -> None:
    def wait(item: MeasureInput) -> MeasureResult:
        assert wait_for(lambda: all(t.name != "renew lease_1" for t in threading.enumerate()))
        return success(item)

    bench.runner.does["a"] = wait


def _raise(error: Exception) -> FakeRunner:
    def fail(item: MeasureInput) -> MeasureResult:
        raise error

    return FakeRunner({"a": fail})


def test_a_worker_that_never_reaches_its_service_names_what_it_tried_and_ends_with_2() -> None:
    bench = Bench(FakeSource(faults={"register": [UNREACHABLE] * 1000})).run()
    assert (bench.exit, bench.said) == (
        Exit.UNREACHABLE,
        [f"{UNREACHABLE}; trying again for 20 s", str(UNREACHABLE)],
    )


def test_a_worker_gives_up_within_its_patience() -> None:
    bench = Bench(FakeSource(faults={"register": [UNREACHABLE] * 1000})).run()
    assert 10.0 < bench.time.now <= 20.0


def test_pauses_between_tries_grow_and_are_bounded() -> None:
    bench = Bench(FakeSource(faults={"register": [UNREACHABLE] * 1000}))
    at: list[float] = []
    register = bench.source.register
    bench.source.register = lambda hello: (at.append(bench.time.now), register(hello))[1]  # type: ignore
    bench.run()
    pauses = [round(b - a, 6) for a, b in pairwise(at)]
    assert pauses == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]


@pytest.mark.parametrize("call", ["register", "lease", "start", "settle"])
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NotATilewright("an SSH server", "http://127.0.0.1:22"), 2),
        (Unauthorized("the token expired"), 3),
        (Superseded("a newer session of w registered"), 5),
        (NameRetired("w is retired"), 6),
        (VersionRefused("protocol 2 is needed"), 7),
    ],
    ids=lambda x: type(x).__name__,
)
def test_an_error_that_cannot_heal_ends_the_worker_at_once_with_its_code(
    call: str, error: Exception, code: int
) -> None:
    bench = Bench(FakeSource([[trial("a")]], faults={call: [error]})).run()
    assert (bench.exit, bench.said[-1]) == (code, str(error))


@pytest.mark.parametrize("call", ["lease", "start", "settle"])
def test_an_outage_is_waited_for_and_nothing_is_lost(call: str) -> None:
    bench = Bench(FakeSource([[trial("a"), trial("b")]], faults={call: [UNREACHABLE] * 20})).run()
    assert (bench.exit, bench.runner.measured, [r.item for r in bench.source.settled]) == (
        Exit.DRAINED,
        ["a", "b"],
        ["a", "b"],
    )


def test_an_outage_is_told_once_and_so_is_its_end() -> None:
    bench = Bench(FakeSource([[trial("a")]], faults={"settle": [UNREACHABLE] * 20})).run()
    assert bench.said == [
        "attached as worker_1",
        "a: 500 ms",
        f"{UNREACHABLE}; trying again for 600 s",
        "the service is within reach again",
        "drained",
    ]


def test_an_outage_beyond_patience_ends_the_worker_with_2() -> None:
    bench = Bench(FakeSource([[trial("a")]], faults={"settle": [UNREACHABLE] * 1000})).run()
    assert (bench.exit, bench.said[-1]) == (Exit.UNREACHABLE, str(UNREACHABLE))


def test_a_late_result_that_is_refused_costs_the_lease_and_not_the_worker() -> None:
    lost = LeaseLost("the lease expired and its items were granted again")
    bench = Bench(FakeSource([[trial("a"), trial("b")], [trial("c")]], faults={"settle": [lost]})).run()
    assert (bench.exit, bench.runner.measured) == (Exit.DRAINED, ["a", "c"])


def test_a_lost_lease_is_not_released() -> None:
    bench = Bench(FakeSource([[trial("a"), trial("b")]], faults={"start": [LeaseLost("gone")]})).run()
    assert ("release", "lease_1") not in bench.source.calls


def test_a_result_that_is_refused_does_not_stop_the_next() -> None:
    refused = SourceRefused("another result of this attempt is stored")
    bench = Bench(FakeSource([[trial("a"), trial("b")]], faults={"settle": [refused]})).run()
    assert [r.item for r in bench.source.settled] == ["b"]


def test_an_item_that_may_not_start_is_not_measured() -> None:
    refused = SourceRefused("the trial is cancelled")
    bench = Bench(FakeSource([[trial("a"), trial("b")]], faults={"start": [refused]})).run()
    assert bench.runner.measured == ["b"]


def test_a_signal_while_the_service_is_out_of_reach_ends_an_idle_worker_with_0() -> None:
    bench = Bench(FakeSource(faults={"lease": [UNREACHABLE] * 1000}))
    bench.time.sleep = lambda seconds: bench.worker.interrupt()  # type: ignore[method-assign]
    bench = Bench(bench.source, time=bench.time)
    assert bench.run().exit == Exit.DRAINED


def test_a_lease_lost_while_measuring_still_lets_the_result_be_offered() -> None:
    source = FakeSource([[trial("a"), trial("b")]], {"renew": [LeaseLost("expired")]}, renew_seconds=0.01)
    bench = Bench(source)
    _measure_until_renewing_is_over(bench)
    bench.run()
    assert ([r.item for r in source.settled], bench.runner.measured) == (["a"], ["a"])


def test_renewing_goes_on_after_an_outage() -> None:
    source = FakeSource([[trial("a")]], {"renew": [UNREACHABLE, UNREACHABLE]}, renew_seconds=0.01)
    bench = Bench(source)

    def wait_for_three_renewals(item: MeasureInput) -> MeasureResult:
        assert wait_for(lambda: source.calls.count(("renew",)) >= 3)
        return success(item)

    bench.runner.does["a"] = wait_for_three_renewals
    assert bench.run().exit == Exit.DRAINED


def test_a_worker_superseded_while_measuring_stops_measuring_and_ends_with_5() -> None:
    source = FakeSource([[trial("a"), trial("b")]], {"renew": [Superseded("by another")]}, renew_seconds=0.01)
    bench = Bench(source)
    _measure_until_renewing_is_over(bench)
    bench.run()
    assert (bench.exit, bench.runner.cancelled, bench.runner.measured) == (Exit.SUPERSEDED, [None], ["a"])


def test_a_bug_while_renewing_is_recorded() -> None:
    source = FakeSource([[trial("a")]], {"renew": [ZeroDivisionError("in renew")]}, renew_seconds=0.01)
    bench = Bench(source)
    _measure_until_renewing_is_over(bench)
    bench.run()
    assert any(line.endswith("ZeroDivisionError: in renew\n") for line in bench.said)


def test_a_bug_while_measuring_is_settled_with_its_traceback() -> None:
    bench = Bench(FakeSource([[trial("a"), trial("b")]]), _raise(ZeroDivisionError("oops"))).run()
    first, second = bench.source.settled
    assert first.failure is not None and second == success(trial("b"))
    assert first.failure.last_words.startswith("Traceback")
    assert replace(first.failure, last_words="") == Failure(
        "worker_lost", "the worker failed: ZeroDivisionError: oops"
    )


def test_a_machine_on_which_nothing_can_be_measured_ends_the_worker_and_gives_the_lease_back() -> None:
    bench = Bench(
        FakeSource([[trial("a")]]), _raise(MeasureError("the measuring process does not start"))
    ).run()
    assert (bench.exit, bench.said[-1], bench.source.calls[-1]) == (
        Exit.FAILED,
        "the measuring process does not start",
        ("release", "lease_1"),
    )


def test_an_unknown_error_is_recorded_and_the_worker_attaches_again() -> None:
    bench = Bench(FakeSource([[trial("a")]], faults={"lease": [KeyError("ttl")]})).run()
    assert (bench.exit, bench.source.calls[:4], bench.runner.measured) == (
        Exit.DRAINED,
        [("register",), ("lease",), ("register",), ("lease",)],
        ["a"],
    )
    assert any(line.endswith("KeyError: 'ttl'\n") for line in bench.said)


def test_five_unknown_errors_in_a_row_end_the_worker_with_1() -> None:
    bench = Bench(FakeSource(faults={"lease": [KeyError("ttl")] * 9})).run()
    assert (bench.exit, bench.said[-1]) == (Exit.FAILED, "giving up after 5 unexpected errors in a row")


def test_a_service_that_forgot_the_worker_is_told_again() -> None:
    refused = SourceRefused("no worker worker_1 is registered")
    bench = Bench(FakeSource([[trial("a")]], faults={"lease": [refused]})).run()
    assert (bench.said[1], bench.source.calls[2], bench.exit) == (str(refused), ("register",), Exit.DRAINED)


def test_a_lease_that_cannot_be_released_is_left_to_expire() -> None:
    source = FakeSource(
        [[trial("a"), trial("b")]], {"release": [UNREACHABLE]}, updates=[LeaseUpdate(drain=True)]
    )
    bench = Bench(source).run()
    assert (bench.exit, bench.said[2]) == (
        Exit.DRAINED,
        f"lease lease_1 could not be released and will expire: {UNREACHABLE}",
    )


def test_a_worker_that_cannot_say_that_it_leaves_has_drained_all_the_same() -> None:
    bench = Bench(FakeSource(faults={"leave": [UNREACHABLE]})).run()
    assert (bench.exit, bench.said[1:]) == (
        Exit.DRAINED,
        [f"the service was not told that this worker left: {UNREACHABLE}", "drained"],
    )


def test_a_worker_that_never_attached_does_not_leave() -> None:
    bench = Bench(FakeSource(faults={"register": [UNREACHABLE] * 1000}))
    bench.time.sleep = lambda seconds: bench.worker.interrupt()  # type: ignore[method-assign]
    bench = Bench(bench.source, time=bench.time)
    bench.run()
    assert ("leave",) not in bench.source.calls


def _signalled_while_settling(*, after: float, ttl: float = 30.0) -> Bench:
    """A worker that has a result for a service out of reach, and gets a signal so many seconds later."""
    bench = Bench(FakeSource([[trial("a")]], {"settle": [UNREACHABLE] * 1000}, ttl_seconds=ttl))
    sleep = bench.time.sleep

    def sleep_and_signal(seconds: float) -> None:
        before = bench.time.now
        sleep(seconds)
        if before < after <= bench.time.now:
            bench.worker.interrupt()

    bench.time.sleep = sleep_and_signal  # type: ignore[method-assign]
    bench = Bench(bench.source, time=bench.time)
    return bench.run()


@pytest.mark.parametrize(
    ("after", "ttl", "ends"),
    [(5.0, 20.0, 20.0), (5.0, 300.0, 35.0), (60.0, 30.0, 60.0)],
    ids=["with the lease", "after 30 s of a long lease", "at once where the lease has expired"],
)
def test_a_signalled_worker_offers_its_result_no_longer_than_its_lease_lasts(
    after: float, ttl: float, ends: float
) -> None:
    assert ends <= _signalled_while_settling(after=after, ttl=ttl).time.now <= ends + 0.3


def test_a_signalled_worker_that_gives_up_says_which_result_was_not_delivered_and_ends_with_2() -> None:
    bench = _signalled_while_settling(after=5.0)
    assert (bench.exit, bench.said[-2:]) == (
        Exit.UNREACHABLE,
        ["the result of a was not delivered: 500 ms", str(UNREACHABLE)],
    )


def test_a_signalled_worker_delivers_to_a_service_that_is_back_in_time() -> None:
    bench = Bench(FakeSource([[trial("a")]], {"settle": [UNREACHABLE] * 3}))

    def interrupted(item: MeasureInput) -> MeasureResult:
        bench.worker.interrupt()
        return success(item)

    bench.runner.does["a"] = interrupted
    assert (bench.run().exit, [r.item for r in bench.source.settled]) == (Exit.DRAINED, ["a"])


def test_an_item_that_was_not_started_is_let_go_by_a_signalled_worker() -> None:
    bench = Bench(FakeSource([[trial("a")]], {"start": [UNREACHABLE] * 1000}))
    bench.time.sleep = lambda seconds: bench.worker.interrupt()  # type: ignore[method-assign]
    bench = Bench(bench.source, time=bench.time)
    bench.run()
    assert (bench.exit, bench.runner.measured, bench.source.calls[-2:]) == (
        Exit.DRAINED,
        [],
        [("release", "lease_1"), ("leave",)],
    )
