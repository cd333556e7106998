"""When a guided search looks at all that lies around the fastest."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from tilewright.tuner.candidate import Candidate
from tilewright.tuner.outcome import Outcome, Trial
from tilewright.tuner.pool import Pool
from tilewright.tuner.recorded import RecordedSpace
from tilewright.tuner.strategies import Point, View, field
from tilewright.tuner.strategies.guided import Guided
from tilewright.tuner.strategies.incumbents import around, since_best

SPACE = RecordedSpace.load(Path(__file__).parent.parent / "golden" / "spaces" / "matmul_4x64x64.json")


def after(fastest: int, trials: int) -> View:
    """The view of a search that has measured every eleventh point, of which that number was the fastest."""
    pool = Pool(0, SPACE.sketches[0])
    history = []
    for number, row in enumerate(SPACE.configs[::11][:trials]):
        pool.take(row)
        candidate = Candidate(
            number, 0, "recorded", tuple(map(int, row)), "", str(number), pool.features(row[None, :])[0]
        )
        seconds = 1e-3 if number == fastest else 2e-3 + 1e-5 * number
        history.append(Trial(candidate, Outcome.timed(seconds)))
    return View(9, [pool], (), history)


def proposed(view: View, count: int) -> list[Point]:
    rng = np.random.default_rng(1)
    return list(islice(Guided().propose(view, count, rng), count))


def rows(points: list[Point]) -> list[list[int]]:
    return [point.row.tolist() for point in points]


def test_after_enough_trials_without_a_faster_one_all_around_the_fastest_is_next_the_nearest_first() -> None:
    view = after(fastest=7, trials=16)
    beside = list(around(view, 1))
    found = proposed(view, len(beside))
    assert rows(found) == rows(beside)
    assert {point.origin for point in found} == {"local"}
    assert all(point.predicted is not None for point in found)


def test_before_that_the_places_go_on_in_turn() -> None:
    found = proposed(after(fastest=8, trials=16), 8)
    assert len({point.origin for point in found}) > 1


def test_once_all_around_the_fastest_is_measured_the_places_go_on_in_turn() -> None:
    view = after(fastest=7, trials=16)
    for point in list(around(view, 1)):
        view.pools[0].take(point.row)
    assert len({point.origin for point in proposed(view, 8)}) > 1


def test_where_not_every_open_point_is_looked_at_the_places_go_on_in_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(field, "WHOLE", len(SPACE.configs) - 1)
    found = proposed(after(fastest=7, trials=16), 8)
    assert len({point.origin for point in found}) > 1


@pytest.mark.parametrize(("fastest", "trials", "later"), [(0, 0, 0), (0, 1, 0), (0, 5, 4), (4, 5, 0)])
def test_trials_since_the_fastest_are_those_told_after_it(fastest: int, trials: int, later: int) -> None:
    assert since_best(after(fastest, trials)) == later
