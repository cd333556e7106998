from __future__ import annotations

import statistics
from dataclasses import dataclass, field

import pytest

from tilewright.measure.timing import BelowResolution, Timing, time_call


@dataclass
class FakeKernel:
    """A kernel and a clock that moves only while it runs: by the given seconds, the last ones for ever."""

    seconds: list[float]
    now: float = 0.0
    calls: int = 0
    readings: list[float] = field(default_factory=list)

    def __call__(self) -> None:
        self.now += self.seconds[min(self.calls, len(self.seconds) - 1)]
        self.calls += 1

    def clock(self) -> float:
        self.readings.append(self.now)
        return self.now


def test_the_time_is_the_minimum_of_three_samples() -> None:
    kernel = FakeKernel([0.5, 0.25, 1.0])
    timing = time_call(kernel, clock=kernel.clock)
    assert timing == Timing(0.25, (0.5, 0.25, 1.0), censored=False, calls=1)


@pytest.mark.parametrize("seconds", [2e-6, 1e-4, 1.9e-3, 0.019, 0.021])
def test_every_sample_lasts_at_least_20_ms(seconds: float) -> None:
    kernel = FakeKernel([seconds])
    timing = time_call(kernel, clock=kernel.clock)
    assert timing.calls * seconds >= 0.020


@pytest.mark.parametrize("seconds", [2e-6, 1e-4, 1.9e-3])
def test_a_short_kernel_is_not_run_much_longer_than_needed(seconds: float) -> None:
    kernel = FakeKernel([seconds])
    time_call(kernel, clock=kernel.clock)
    assert kernel.now < 4 * 0.022


def test_a_kernel_that_speeds_up_is_sampled_again_rather_than_briefly() -> None:
    kernel = FakeKernel([0.025, 0.001])
    timing = time_call(kernel, clock=kernel.clock)
    assert [round(s, 12) for s in timing.samples] == [0.025, 0.001, 0.001]
    assert timing.calls >= 20


def test_a_first_sample_over_twice_the_best_ends_the_trial() -> None:
    kernel = FakeKernel([0.5])
    timing = time_call(kernel, best=0.24, clock=kernel.clock)
    assert timing == Timing(0.5, (0.5,), censored=True, calls=1)


def test_a_first_sample_of_twice_the_best_does_not_end_the_trial() -> None:
    kernel = FakeKernel([0.5])
    assert not time_call(kernel, best=0.25, clock=kernel.clock).censored


def test_a_later_slow_sample_does_not_end_the_trial() -> None:
    kernel = FakeKernel([0.25, 0.75, 0.75])
    timing = time_call(kernel, best=0.2, clock=kernel.clock)
    assert timing == Timing(0.25, (0.25, 0.75, 0.75), censored=False, calls=1)


def test_a_call_already_made_that_was_long_and_slow_ends_the_trial_without_another() -> None:
    kernel = FakeKernel([0.5])
    timing = time_call(kernel, first=0.5, best=0.1, clock=kernel.clock)
    assert (timing, kernel.calls) == (Timing(0.5, (0.5,), censored=True, calls=1), 0)


def test_a_call_already_made_that_was_too_short_to_judge_does_not_end_the_trial() -> None:
    kernel = FakeKernel([0.001])
    assert not time_call(kernel, first=0.019, best=0.001, clock=kernel.clock).censored


def test_a_coarse_clock_makes_for_more_calls() -> None:
    kernel = FakeKernel([1e-6])
    timing = time_call(kernel, clock=lambda: kernel.now // 0.015 * 0.015)
    assert timing.seconds == pytest.approx(1e-6, rel=0.5)


def test_a_clock_that_stands_still_is_refused_by_name() -> None:
    with pytest.raises(BelowResolution) as caught:
        time_call(lambda: None, clock=lambda: 0.0)
    assert str(caught.value) == "below the timer's resolution: 2000000 calls took 0 s"


def test_ten_measurements_of_a_microsecond_kernel_agree_within_ten_percent() -> None:
    work = list(range(100))
    seconds = [time_call(lambda: sum(work)).seconds for _ in range(10)]
    assert statistics.stdev(seconds) / statistics.mean(seconds) < 0.10


# ---- kernels of several threads ----
@dataclass
class Interrupted:
    """A count that rises in the samples of these numbers; it is read before and after each."""

    during: set[int]
    readings: int = 0
    count: int = 0

    def __call__(self) -> int:
        if self.readings % 2 and self.readings // 2 in self.during:
            self.count += 1
        self.readings += 1
        return self.count


def test_samples_that_were_interrupted_do_not_count() -> None:
    kernel = FakeKernel([0.25, 0.5, 0.125, 0.5, 0.5])
    timing = time_call(kernel, clock=kernel.clock, interruptions=Interrupted({0, 2}))
    assert timing == Timing(0.5, (0.5, 0.5, 0.5), censored=False, calls=1)


def test_the_best_samples_are_told_as_disturbed_when_all_were_interrupted() -> None:
    kernel = FakeKernel([0.5, 0.25, 0.375, 0.5])
    timing = time_call(kernel, clock=kernel.clock, interruptions=Interrupted(set(range(99))))
    assert timing == Timing(0.25, (0.25, 0.375, 0.5), censored=False, calls=1, disturbed=True)
    assert kernel.calls == 12


def test_few_samples_without_interruption_are_better_than_none() -> None:
    kernel = FakeKernel([0.5])
    timing = time_call(kernel, clock=kernel.clock, interruptions=Interrupted(set(range(99)) - {7}))
    assert timing == Timing(0.5, (0.5,), censored=False, calls=1)


@pytest.mark.parametrize(("seconds", "is_censored"), [(0.375, False), (0.625, True)])
def test_an_interrupted_sample_censors_at_four_times_the_best(seconds: float, is_censored: bool) -> None:
    kernel = FakeKernel([seconds])
    timing = time_call(kernel, best=0.125, clock=kernel.clock, interruptions=Interrupted(set(range(99))))
    assert timing.censored is is_censored
