from __future__ import annotations

import statistics
from dataclasses import dataclass, field

import numpy as np
import pytest

from tilewright.measure.conditions import Conditions
from tilewright.measure.timing import BelowResolution, Timing, longest_first_call, time_call

OTHER_WORK = "other work interrupted it"


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


def test_the_time_of_a_long_kernel_is_the_minimum_of_three_samples() -> None:
    kernel = FakeKernel([0.5, 0.25, 1.0])
    timing = time_call(kernel, clock=kernel.clock)
    assert timing == Timing(0.25, (0.5, 0.25, 1.0), censored=False, calls=1)


@pytest.mark.parametrize("seconds", [2e-6, 1e-4, 1.1e-3, 1.9e-3, 0.003])
def test_every_sample_lasts_at_least_2_ms(seconds: float) -> None:
    kernel = FakeKernel([seconds])
    timing = time_call(kernel, clock=kernel.clock)
    assert timing.calls * seconds >= 0.002


@pytest.mark.parametrize("seconds", [2e-6, 1e-4, 1.9e-3, 0.003])
@pytest.mark.parametrize(("best", "total"), [(None, 0.020), (1.0, 0.020), (0.96, 0.020), (0.9, 0.010)])
def test_all_samples_come_to_20_ms_for_a_contender_and_to_10_ms_for_others(
    seconds: float, best: float | None, total: float
) -> None:
    kernel = FakeKernel([seconds])
    timing = time_call(kernel, best=best and best * seconds, clock=kernel.clock)
    sampled = len(timing.samples) * timing.calls * seconds
    assert total <= sampled < total + 2 * timing.calls * seconds


@pytest.mark.parametrize("seconds", [2e-6, 1e-4, 1.9e-3])
def test_a_short_kernel_is_not_run_much_longer_than_needed(seconds: float) -> None:
    kernel = FakeKernel([seconds])
    time_call(kernel, clock=kernel.clock)
    assert kernel.now < 0.030


@pytest.mark.parametrize("small", [2e-7, 2e-6, 5e-6])
def test_a_trial_of_a_small_kernel_runs_no_longer_than_that_of_a_large_one(small: float) -> None:
    kernels = [FakeKernel([seconds]) for seconds in (small, 0.0083)]
    for kernel in kernels:
        time_call(kernel, clock=kernel.clock)
    assert kernels[0].now <= kernels[1].now


def test_a_kernel_that_speeds_up_is_sampled_again_rather_than_briefly() -> None:
    kernel = FakeKernel([0.025, 0.001])
    timing = time_call(kernel, clock=kernel.clock)
    assert {round(s, 12) for s in timing.samples} == {0.025, 0.001}
    assert timing.calls >= 2


# ---- the race against the best ----
@pytest.mark.parametrize(
    ("seconds", "samples", "is_stopped"),
    [
        ([0.0201], 1, True),
        ([0.0199, 0.0151], 2, True),
        ([0.0399, 0.0151], 1, True),
        ([0.0199, 0.0149, 0.0149], 3, False),
        ([0.0101, 0.0399, 0.0399], 3, False),
    ],
)
def test_a_candidate_is_stopped_once_its_least_sample_is_slower_than_noise_explains(
    seconds: list[float], samples: int, is_stopped: bool
) -> None:
    """The best takes 10 ms here: the limits are 20 ms after one sample and 15 ms after two."""
    kernel = FakeKernel(seconds)
    timing = time_call(kernel, best=0.010, clock=kernel.clock)
    assert (len(timing.samples), timing.censored) == (samples, is_stopped)
    assert timing.seconds == min(timing.samples)


def test_a_kernel_a_little_slower_than_the_best_gets_half_of_the_time_and_is_exact() -> None:
    kernel = FakeKernel([0.0025])
    timing = time_call(kernel, best=0.0022, clock=kernel.clock)
    assert (len(timing.samples), timing.censored) == (4, False)


def test_one_slow_sample_of_a_contender_does_not_end_its_trial() -> None:
    kernel = FakeKernel([0.25, 0.75, 0.375])
    timing = time_call(kernel, best=0.2421875, clock=kernel.clock)
    assert timing == Timing(0.25, (0.25, 0.75, 0.375), censored=False, calls=1)


def test_without_a_best_there_is_no_race() -> None:
    kernel = FakeKernel([9.0, 0.5, 0.5])
    assert not time_call(kernel, first=9.0, clock=kernel.clock).censored


def test_a_call_already_made_that_was_long_and_slow_ends_the_trial_without_another() -> None:
    kernel = FakeKernel([0.5])
    timing = time_call(kernel, first=0.5, best=0.1, clock=kernel.clock)
    assert (timing, kernel.calls) == (Timing(0.5, (0.5,), censored=True, calls=1), 0)


@pytest.mark.parametrize("first", [0.0019, 0.003])
def test_a_call_already_made_that_was_too_short_or_just_cold_does_not_end_the_trial(first: float) -> None:
    kernel = FakeKernel([0.001])
    assert not time_call(kernel, first=first, best=0.001, clock=kernel.clock).censored


@pytest.mark.parametrize(
    ("best", "threads", "limit"), [(None, 1, 0.0), (2e-6, 1, 0.1), (0.01, 1, 0.2), (0.01, 4, 0.8)]
)
def test_a_first_call_has_a_limit_where_there_is_a_best(
    best: float | None, threads: int, limit: float
) -> None:
    assert longest_first_call(best, threads) == pytest.approx(limit)


@pytest.mark.parametrize("noise", [0.02, 0.05])
@pytest.mark.parametrize("ahead", [0.0, 0.03, 0.2])
def test_a_faster_candidate_is_never_stopped_by_noise(noise: float, ahead: float) -> None:
    """Noise only ever adds; one sample in fifty takes half as long again."""
    rng = np.random.default_rng(5)
    for _ in range(200):
        slower = 1 + np.abs(rng.normal(0, noise, 64)) + 0.45 * (rng.random(64) < 0.02)
        kernel = FakeKernel(list(0.0025 * (1 - ahead) * slower))
        assert not time_call(kernel, best=0.0025, clock=kernel.clock).censored


def test_a_coarse_clock_makes_for_more_calls() -> None:
    kernel = FakeKernel([1e-6])
    timing = time_call(kernel, clock=lambda: kernel.now // 0.001 * 0.001)
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

    def __call__(self) -> Conditions:
        if self.readings % 2 and self.readings // 2 in self.during:
            self.count += 1
        self.readings += 1
        return Conditions(interruptions=self.count)


def test_samples_that_were_interrupted_do_not_count() -> None:
    kernel = FakeKernel([0.25, 0.5, 0.125, 0.5, 0.5])
    timing = time_call(kernel, clock=kernel.clock, parallel=True, look=Interrupted({0, 2}))
    assert timing == Timing(0.5, (0.5, 0.5, 0.5), censored=False, calls=1)


def test_the_best_samples_are_told_as_disturbed_when_all_were_interrupted() -> None:
    kernel = FakeKernel([0.5, 0.25, 0.375, 0.5])
    timing = time_call(kernel, clock=kernel.clock, parallel=True, look=Interrupted(set(range(99))))
    assert timing == Timing(0.25, (0.25, 0.375, 0.5), censored=False, calls=1, disturbance=OTHER_WORK)
    assert kernel.calls == 12


@pytest.mark.parametrize("seconds", [1e-5, 2.5e-3, 0.004, 0.5])
def test_a_machine_that_never_rests_is_waited_for_for_12_samples_and_80_ms(seconds: float) -> None:
    kernel = FakeKernel([seconds])
    timing = time_call(kernel, clock=kernel.clock, parallel=True, look=Interrupted(set(range(99))))
    assert timing.disturbance and len(timing.samples) == 3
    assert kernel.now <= max(12 * seconds, 0.080) + 2 * max(seconds, 0.0025)


def test_few_samples_without_interruption_are_better_than_none() -> None:
    kernel = FakeKernel([0.5])
    timing = time_call(kernel, clock=kernel.clock, parallel=True, look=Interrupted(set(range(99)) - {7}))
    assert timing == Timing(0.5, (0.5,), censored=False, calls=1)


@pytest.mark.parametrize(("seconds", "is_censored"), [(0.37, False), (0.51, True)])
def test_an_interrupted_sample_censors_at_twice_the_ratio(seconds: float, is_censored: bool) -> None:
    kernel = FakeKernel([seconds])
    timing = time_call(
        kernel, best=0.125, clock=kernel.clock, parallel=True, look=Interrupted(set(range(99)))
    )
    assert (timing.censored, timing.disturbance) == (is_censored, OTHER_WORK)


def test_a_parallel_kernel_is_stopped_by_its_first_quiet_samples() -> None:
    kernel = FakeKernel([0.625, 0.375, 0.375])
    timing = time_call(kernel, best=0.125, clock=kernel.clock, parallel=True, look=Interrupted({0}))
    assert (timing.censored, timing.samples, kernel.calls) == (True, (0.625,), 1)
    kernel = FakeKernel([0.25, 0.375, 0.375])
    timing = time_call(kernel, best=0.125, clock=kernel.clock, parallel=True, look=Interrupted({0}))
    assert (timing.censored, timing.samples, kernel.calls) == (True, (0.375,), 2)
