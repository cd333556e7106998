"""Schedules that users suggest, and what is known, for real kernels measured on this machine."""

from __future__ import annotations

import json
import math

import pytest

import tilewright as tw
from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.topi import create
from tilewright.db import Store
from tilewright.tuner.errors import SuggestionRefused
from tilewright.tuner.opening import open_task


@pytest.fixture(scope="module")
def func() -> PrimFunc:
    return create({"op": "matmul", "m": 24, "n": 32, "k": 16, "dtype": "float32"})


def by_hand(func: PrimFunc) -> tw.Trace:
    """A schedule that no sketch of ours makes."""
    schedule = tw.Schedule(func)
    (block,) = schedule.get_blocks()
    i, j, k = schedule.get_loops(block)
    outer, inner = schedule.split(j, [None, 8])
    schedule.reorder(i, outer, k, inner)
    schedule.vectorize(inner)
    return schedule.trace


def test_a_budget_that_was_measured_before_measures_nothing(func: PrimFunc, store: Store) -> None:
    first = tw.tune(func, trials=4, store=store, progress=False)
    again = tw.tune(func, trials=4, store=store, progress=False)
    more = tw.tune(func, trials=6, store=store, seed=7, progress=False)
    anew = tw.tune(func, trials=2, store=store, history="ignore", progress=False)
    assert [(r.trial_count, r.known_count) for r in (first, again, more, anew)] == [
        (4, 0),
        (0, 4),
        (2, 4),
        (2, 0),
    ]
    assert (again.state, again.reason) == ("completed", "all 4 trials of the budget were measured before")
    assert again.trace is not None
    # Not always what the first one crowned: that was timed anew, perhaps while the machine was busier.
    least = min(store.trials(str(first.job)), key=lambda trial: trial.seconds or math.inf)
    known = tw.Trace.from_json(json.loads(least.trace))
    assert (again.trace.canonical_json(), again.seconds) == (known.canonical_json(), least.seconds)
    keys = [t.candidate_key for r in (first, more) for t in store.trials(str(r.job))]
    assert len(set(keys)) == 6


def test_a_schedule_of_ones_own_is_tried_first_though_no_sketch_makes_it(
    func: PrimFunc, store: Store
) -> None:
    own = by_hand(func)
    record = tw.tune(func, trials=2, store=store, suggestions=[own], progress=False)
    first, second = store.trials(str(record.job))
    assert (first.origin, first.sketch, first.outcome) == ("suggested", "suggested", "ok")
    assert tw.Trace.from_json(json.loads(first.trace)).canonical_json() == own.canonical_json()
    assert second.origin != "suggested"
    again = tw.tune(func, trials=2, store=store, suggestions=[own], progress=False)
    assert (again.trial_count, again.known_count) == (0, 2)


def test_the_best_of_another_search_is_a_point_of_the_space(func: PrimFunc, store: Store) -> None:
    best = tw.tune(func, trials=3, progress=False)
    record = tw.tune(func, trials=1, store=store, suggestions=[best], progress=False)
    (trial,) = store.trials(str(record.job))
    assert best.best is not None
    assert (trial.origin, trial.sketch) == ("suggested", best.best.candidate.sketch)


def test_a_trace_that_does_not_apply_is_refused_before_anything_is_recorded(
    func: PrimFunc, store: Store
) -> None:
    other = create({"op": "softmax", "m": 8, "n": 8, "dtype": "float32"})
    with pytest.raises(SuggestionRefused, match=r"suggestions\[0\]: the trace does not apply to 'softmax'"):
        tw.tune(other, store=store, suggestions=[by_hand(func)], progress=False)
    assert store.jobs().items == ()


def test_a_knob_beyond_64_bits_is_refused_by_name(func: PrimFunc) -> None:
    best = tw.ask_tell(func, trials=1).ask()[0]
    (sketch,) = (s for s in open_task(func, tw.Target.parse("llvm")).space.sketches if s.name == best.sketch)
    knobs = {knob.name: 2**70 for knob in sketch.columns.knobs}
    first = sketch.columns.knobs[0].name
    with pytest.raises(SuggestionRefused, match=f"knob '{first}' of sketch .* needs an integer of 64 bits"):
        tw.ask_tell(func, trials=1, suggestions=[{"sketch": best.sketch, "knobs": knobs}])


def test_what_is_no_suggestion_is_refused(func: PrimFunc) -> None:
    with pytest.raises(TypeError, match="a suggestion is a Trace, a TuningRecord with a trace"):
        tw.tune(func, suggestions=[3], progress=False)  # type: ignore[list-item]
