"""What a worker does depends on durations alone, and it ends when the service has nothing more for it."""

from __future__ import annotations

import itertools
import time

import pytest
from fake_source import FakeSource, trial
from worker_bench import UNREACHABLE, Bench

from tilewright.measure.messages import Drain
from tilewright.measure.worker import Exit


@pytest.mark.parametrize("jump", [-86_400.0, 86_400.0])
def test_property_3_a_wall_clock_that_jumps_by_a_day_changes_nothing(
    jump: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run() -> Bench:
        faults = {"settle": [UNREACHABLE] * 3}
        return Bench(FakeSource([[trial("a"), trial("b")]], faults=faults)).run()

    before = run()
    real, jumps = time.time, itertools.count()
    monkeypatch.setattr(time, "time", lambda: real() + jump * next(jumps))
    after = run()
    assert (after.exit, after.said, after.source.calls) == (before.exit, before.said, before.source.calls)


def test_a_worker_that_is_told_to_end_while_it_is_idle_leaves_and_has_drained() -> None:
    bench = Bench(FakeSource([[trial("a")]], faults={"lease": [None, Drain()]})).run()
    assert (bench.exit, bench.source.calls[-2:]) == (Exit.DRAINED, [("lease",), ("leave",)])
