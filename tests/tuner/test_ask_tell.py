"""Searches whose candidates somebody else measures, in Python."""

from __future__ import annotations

import json
import math

import pytest
from synthetic import space, task, tile_seconds, tiles

import tilewright as tw
from tilewright.compiler.topi import create
from tilewright.tuner.ask_tell import AskTell
from tilewright.tuner.budget import Budget
from tilewright.tuner.candidate import Candidate


def seconds(candidate: Candidate) -> float:
    return tile_seconds(json.loads(candidate.trace))


@pytest.fixture
def search() -> AskTell:
    return AskTell(task(tiles()), Budget(24), "random")


def test_a_search_is_asked_and_told_to_its_end(search: AskTell) -> None:
    times = {}
    while candidates := search.ask(3):
        for candidate in candidates:
            times[candidate.number] = seconds(candidate)
            search.tell(candidate.number, times[candidate.number])
    assert (search.finished, search.conclusion) == (
        True,
        ("completed", "all 24 trials of the budget are done"),
    )
    assert search.best is not None
    assert (len(times), search.best.outcome.seconds) == (24, min(times.values()))


def test_a_candidate_is_given_once_and_none_while_results_are_missing(search: AskTell) -> None:
    first = search.ask(64)
    assert [candidate.number for candidate in first] == list(range(8))
    assert search.ask() == []
    for candidate in first[:4]:
        search.tell(candidate.number, 1.0)
    assert [candidate.number for candidate in search.ask(2)] == [8, 9]


def test_results_may_be_told_in_any_order_and_again(search: AskTell) -> None:
    first = search.ask(4)
    for candidate in reversed(first):
        search.tell(candidate.number, seconds(candidate))
        search.tell(candidate.number, seconds(candidate))
    with pytest.raises(ValueError, match="candidate 2 was told something else"):
        search.tell(2, failure="run_error")


@pytest.mark.parametrize("time", [math.nan, math.inf, 0.0, -1.0])
def test_a_time_that_is_none_is_refused(search: AskTell, time: float) -> None:
    search.ask()
    with pytest.raises(ValueError, match="seconds must be finite and above zero"):
        search.tell(0, time)


def test_what_was_not_asked_for_cannot_be_told(search: AskTell) -> None:
    search.ask(2)
    with pytest.raises(ValueError, match="candidate 2 was not asked for; 2 were"):
        search.tell(2, 1.0)


def test_a_result_is_a_time_or_a_known_failure(search: AskTell) -> None:
    search.ask()
    with pytest.raises(ValueError, match="failure is one of build_error"):
        search.tell(0, failure="boredom")
    with pytest.raises(ValueError, match="either seconds or a failure"):
        search.tell(0, 1.0, failure="run_error")
    with pytest.raises(ValueError, match="either seconds or a failure"):
        search.tell(0)


def test_a_small_space_is_exhausted() -> None:
    search = AskTell(task(space({"a": range(3)})), Budget(64), "random")
    for candidate in search.ask(9):
        search.tell(candidate.number, 1.0)
    assert (search.ask(), search.conclusion) == ([], ("exhausted", "the space has no more than 3 candidates"))


def test_a_kernel_is_searched_by_whoever_measures_it() -> None:
    func = create({"op": "matmul", "m": 32, "n": 48, "k": 40, "dtype": "float32"})
    search = tw.ask_tell(func, "llvm -mcpu=x86-64-v3", trials=4, strategy="random")
    for candidate in search.ask(4):
        search.tell(candidate.number, 1e-3 / (1 + candidate.number))
    assert search.best is not None
    trace = search.trace(search.best.candidate)
    assert (search.best.candidate.number, trace.apply(func).trace.canonical_json()) == (
        3,
        trace.canonical_json(),
    )
