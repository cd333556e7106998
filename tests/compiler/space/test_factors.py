"""Factors in a space: no larger than the loop that they split, and together no shorter."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tilewright.compiler.arith import Atom, Knob, Poly, evaluate
from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.schedule import LoopRV, Schedule
from tilewright.compiler.schedule.loop_steps import LoopSteps
from tilewright.compiler.space import Sketch, space_of
from tilewright.compiler.target import Target

Split = tuple[Poly, Sequence[int | Knob | None]]


@pytest.fixture
def splits_of(monkeypatch: pytest.MonkeyPatch, workload: PrimFunc) -> Callable[[Sketch], list[Split]]:
    """The extent and the factors of every split that a sketch does, over its knobs."""
    seen: list[Split] = []
    split = LoopSteps.split

    def spy(self: Schedule, loop: LoopRV, factors: Any, *args: Any, **options: Any) -> list[LoopRV]:
        seen.append((loop.var.extent, factors))
        return split(self, loop, factors, *args, **options)

    def of(sketch: Sketch) -> list[Split]:
        seen.clear()
        monkeypatch.setattr(LoopSteps, "split", spy)
        sketch.trace.apply(workload)
        monkeypatch.setattr(LoopSteps, "split", split)
        return list(seen)

    return of


def test_no_factor_exceeds_its_loop_and_all_of_them_cover_it(
    workload: PrimFunc, target: Target, splits_of: Callable[[Sketch], list[Split]]
) -> None:
    for sketch in space_of(workload, target).sketches:
        splits = splits_of(sketch)
        for row in sketch.columns.random(40, np.random.default_rng(4)):
            config = sketch.config(row)
            for extent, factors in splits:
                knobs: dict[Atom, int] = {
                    k: config[k.name] for k in (*extent.knobs(), *(f for f in factors if isinstance(f, Knob)))
                }
                size = evaluate(extent, knobs)
                numbers = [knobs[f] if isinstance(f, Knob) else f for f in factors if f is not None]
                assert all(n <= size for n in numbers), (sketch.name, config, size, numbers)
                assert None in factors or np.prod(numbers) >= size
