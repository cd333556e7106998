"""A candidate's samples stand between two readings of a baseline."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pytest

from tilewright.compiler import te
from tilewright.compiler.ir import PrimFunc, to_json
from tilewright.compiler.runtime import ParamInfo
from tilewright.measure.checked_timing import Bench, check_and_time
from tilewright.measure.conditions import Conditions
from tilewright.measure.messages import MeasureInput, MeasureResult
from tilewright.measure.reference import Reference


def doubled() -> PrimFunc:
    a = te.placeholder((4096,), "float32")
    return te.create_prim_func([a, te.compute((4096,), lambda i: a[i] + a[i])])


class Doubles:
    """A kernel that is right."""

    params = (ParamInfo("a", "float32", (4096,), False), ParamInfo("out", "float32", (4096,), True))

    def bind(self, *arrays: np.ndarray) -> Callable[[], None]:  # type: ignore[type-arg]
        a, out = arrays
        return partial(_add, a, out)


def _add(a: np.ndarray, out: np.ndarray) -> None:  # type: ignore[type-arg]
    np.add(a, a, out=out)


@dataclass
class Readings:
    """A baseline that takes what the test says, one reading after another, then what the last one took."""

    seconds_of: Iterator[float]
    last: float = 1.0
    taken: int = 0

    def seconds(self) -> float:
        self.taken += 1
        self.last = next(self.seconds_of, self.last)
        return self.last


@dataclass
class Quiet:
    """Sensors that see the same all the time, or what the test says."""

    moments: list[Conditions] = field(default_factory=list)

    def look(self, is_parallel: bool = False) -> Conditions:
        return self.moments.pop(0) if self.moments else Conditions()


def measured(*readings: float, quiet: Quiet | None = None) -> tuple[MeasureResult, int]:
    """The result between these readings, and how many were taken."""
    baseline = Readings(iter(readings))
    func = doubled()
    item = MeasureInput("t", 1, to_json(func), {}, {})
    bench = Bench(quiet or Quiet(), baseline)  # type: ignore[arg-type]
    result = check_and_time(item, Doubles(), Reference.of(to_json(func), 0), bench=bench)
    assert result.failure is None, result.failure
    return result, baseline.taken


@pytest.mark.parametrize("after", [0.91, 1.0, 1.09])
def test_a_baseline_that_stays_is_kept_beside_the_samples(after: float) -> None:
    result, taken = measured(1.0, after)
    assert (result.baseline, result.disturbed, taken) == ((1.0, after), False, 2)


def test_samples_between_which_the_baseline_moved_are_taken_again() -> None:
    result, taken = measured(1.0, 1.3, 1.3, 1.31)
    assert (result.baseline, result.disturbed, taken) == ((1.3, 1.31), False, 4)


def test_samples_between_which_it_moved_again_are_marked_with_the_reason() -> None:
    result, taken = measured(1.0, 1.3, 1.0, 1.25)
    assert (result.baseline, result.disturbance, taken) == (
        (1.0, 1.25),
        "the baseline moved by +25% meanwhile",
        4,
    )
    assert result.disturbed


def test_a_throttled_processor_marks_a_trial_whose_every_sample_it_disturbed() -> None:
    moments = [Conditions(throttled=number) for number in range(1000)]
    result, _ = measured(1.0, 1.0, quiet=Quiet(moments))
    assert (result.disturbed, result.disturbance) == (True, "the processor was throttled")


def test_one_throttled_sample_is_not_among_those_that_count() -> None:
    moments = [Conditions(throttled=1), Conditions(throttled=2)] + [Conditions(throttled=2)] * 1000
    result, _ = measured(1.0, 1.0, quiet=Quiet(moments))
    assert (result.disturbed, result.disturbance) == (False, "")


def test_without_a_baseline_a_trial_is_timed_all_the_same() -> None:
    func = doubled()
    item = MeasureInput("t", 1, to_json(func), {}, {})
    result = check_and_time(
        item,
        Doubles(),
        Reference.of(to_json(func), 0),
        bench=Bench(Quiet()),  # type: ignore[arg-type]
    )
    assert (result.failure, result.baseline) == (None, ())
