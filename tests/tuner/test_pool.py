"""The points of a sketch that are still to be had."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import FakeColumns, FakeSketch, Knob, space, tiles

from tilewright.tuner.pool import Pool

DOMAINS = st.lists(st.sets(st.integers(1, 1 << 40), min_size=1, max_size=6), min_size=1, max_size=5)


def pool_of(domains: list[set[int]]) -> Pool:
    knobs = tuple(Knob(f"k{n}", tuple(sorted(domain))) for n, domain in enumerate(domains))
    return Pool(0, FakeSketch("s", FakeColumns(knobs, {})))


@settings(max_examples=50, deadline=None)
@given(domains=DOMAINS)
def test_every_row_has_a_code_of_its_own(domains: list[set[int]]) -> None:
    pool = pool_of(domains)
    rows = pool.points()
    assert (len(rows), len(np.unique(pool.codes(rows)))) == (pool.size, pool.size)


def test_rows_of_a_space_beyond_64_bits_have_codes_of_their_own() -> None:
    pool = pool_of([set(range(1, 1001))] * 10)
    rows = np.random.default_rng(0).integers(1, 1001, (5000, 10))
    assert len(np.unique(pool.codes(rows))) == len(np.unique(rows, axis=0))


def test_drawing_from_an_enumerable_sketch_gives_each_legal_row_once() -> None:
    pool = Pool(
        0, space({"a": range(6), "b": range(6)}, rules={"sum": lambda p: p.sum(axis=1) > 4}).sketches[0]
    )
    rng, drawn = np.random.default_rng(0), []
    while len(rows := pool.draw(4, rng)):
        for row in rows:
            pool.take(row)
            drawn.append(tuple(row))
    assert sorted(drawn) == [(a, b) for a in range(6) for b in range(6) if a + b <= 4]


def test_a_taken_row_is_never_drawn_again() -> None:
    pool = Pool(0, tiles().sketches[0])
    rng = np.random.default_rng(0)
    taken = pool.draw(50, rng)
    for row in taken:
        pool.take(row)
    again = {tuple(row) for row in pool.draw(5000, rng)}
    assert again.isdisjoint({tuple(row) for row in taken})


def test_a_sketch_without_knobs_has_one_point() -> None:
    pool = pool_of([])
    (row,) = pool.draw(8, np.random.default_rng(0))
    pool.take(row)
    assert (pool.size, len(pool.draw(8, np.random.default_rng(0)))) == (1, 0)


def test_fresh_rows_keep_the_order_of_their_first_appearance() -> None:
    pool = pool_of([{1, 2, 3, 4}])
    pool.take(np.array([2]))
    assert pool.fresh(np.array([[4], [2], [1], [4], [3]])).tolist() == [[4], [1], [3]]


@pytest.mark.parametrize("n", [1, 7, 300])
def test_no_more_rows_are_drawn_than_were_asked_for(n: int) -> None:
    assert len(Pool(0, tiles().sketches[0]).draw(n, np.random.default_rng(0))) == n
