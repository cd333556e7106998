"""Samplers: what they offer, what of it enters the trace, and how it is replayed."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tilewright.compiler import interpret
from tilewright.compiler.ir import PrimFunc, structural_equal
from tilewright.compiler.schedule import Schedule, ScheduleError, Trace, TraceError
from tilewright.compiler.schedule.choose import Enumeration


def tiled(func: PrimFunc) -> Schedule:
    sch = Schedule(func)
    c = sch.get_block("C")
    i, _, _ = sch.get_loops(c)
    sch.split(i, sch.sample_perfect_tile(i, n=3, max_innermost_factor=4))
    return sch


def test_a_perfect_tile_is_of_the_divisors_and_its_product_divides_the_extent(matmul: PrimFunc) -> None:
    sch = tiled(matmul)
    assert {k: v.domain for k, v in sch.knobs.items()} == {"i_tile0": (1, 2, 5, 10), "i_tile1": (1, 2)}
    assert [str(c) for c in sch.constraints] == ["-i_tile0 * i_tile1 * (10 // (i_tile0 * i_tile1)) + 10"]


def test_a_perfect_tile_round_trips_through_json_and_resolves_to_a_plain_split(matmul: PrimFunc) -> None:
    trace = Trace.from_json(tiled(matmul).trace.to_json())
    assert trace.knobs == ("i_tile0", "i_tile1")
    assert trace.apply(matmul).trace == trace
    by_hand = Schedule(matmul)
    by_hand.split(by_hand.get_loops(by_hand.get_block("C"))[0], [None, 5, 2])
    resolved = trace.resolve({"i_tile0": 5, "i_tile1": 2})
    assert structural_equal(resolved.apply(matmul).func, by_hand.func)
    arrays = interpret.random_inputs(matmul, 0)
    interpret.run(resolved.apply(matmul).func, arrays)
    assert interpret.check(interpret.expected(matmul, arrays), arrays).ok


def test_a_perfect_tile_prints_as_python_that_makes_it_again(matmul: PrimFunc) -> None:
    trace = tiled(matmul).trace
    assert trace.script() == (
        "C = sch.get_block('C')\n"
        "i, _, _ = sch.get_loops(C)\n"
        "_, i_tile0, i_tile1 = sch.sample_perfect_tile(i, 3, max_innermost_factor=4)\n"
        "sch.split(i, factors=[None, i_tile0, i_tile1])\n"
    )
    sch = Schedule(matmul)
    exec(trace.script(), {"sch": sch})
    assert sch.trace.canonical_json() == trace.canonical_json()


@pytest.mark.parametrize("n", [0, -1, 2.0, "2"])
def test_a_perfect_tile_takes_a_number_of_factors(matmul: PrimFunc, n: int) -> None:
    sch = Schedule(matmul)
    with pytest.raises(ScheduleError, match="n and max_innermost_factor are integers of at least 1"):
        sch.sample_perfect_tile(sch.get_loops(sch.get_block("C"))[0], n)


def test_a_perfect_tile_refuses_a_name_that_is_taken(matmul: PrimFunc) -> None:
    sch = tiled(matmul)
    with pytest.raises(ScheduleError, match="'i_tile0' is taken, or no identifier"):
        sch.sample_perfect_tile(sch.get_loops(sch.get_block("C"))[-1], 2, names=["i_tile0"])


@pytest.mark.parametrize("name", ["b0", "l12"])
def test_a_knob_is_not_named_like_a_handle_in_a_trace(matmul: PrimFunc, name: str) -> None:
    sch = Schedule(matmul)
    with pytest.raises(ScheduleError, match=f"'{name}' is how traces name handles; give the knob another"):
        sch.sample_categorical([1, 2], name)


@pytest.mark.parametrize("name", ["", "x y", "x" * 101, 5])
def test_the_name_of_a_knob_is_one_that_a_trace_holds(matmul: PrimFunc, name: Any) -> None:
    with pytest.raises(ScheduleError, match="is taken, or no identifier of at most 100 characters"):
        Schedule(matmul).sample_categorical([1, 2], name)


@pytest.mark.parametrize("names", ["a", 5])
def test_the_names_of_a_tile_are_a_list(matmul: PrimFunc, names: Any) -> None:
    sch = Schedule(matmul)
    with pytest.raises(ScheduleError, match="names are a list of the 1 knobs' names"):
        sch.sample_perfect_tile(sch.get_loops(sch.get_block("C"))[0], 2, names=names)


def test_a_tile_of_many_factors_is_refused_at_once(matmul: PrimFunc) -> None:
    sch = Schedule(matmul)
    with pytest.raises(ScheduleError, match="a loop is cut into at most 16 factors, got 200"):
        sch.sample_perfect_tile(sch.get_loops(sch.get_block("C"))[0], 200)


@pytest.mark.parametrize("values", [[], [0], [1.5], [True], ["a"], [2**31 + 1], None, 5, "12"])
def test_candidates_are_integers_that_a_split_takes(matmul: PrimFunc, values: Any) -> None:
    sch = Schedule(matmul)
    with pytest.raises(ScheduleError, match="candidates are a list of integers from 1 to 2"):
        sch.sample_categorical(values)
    assert (sch.knobs, sch.trace.instructions) == ({}, ())


def test_candidates_of_numpy_have_a_json_form(matmul: PrimFunc) -> None:
    sch = Schedule(matmul)
    sch.sample_categorical(np.array([4, 2]), "width")  # type: ignore[arg-type]
    again = Trace.from_json(json.loads(json.dumps(sch.trace.to_json()))).apply(matmul)
    assert again.knobs["width"].domain == (2, 4)


def test_a_trace_with_a_perfect_tile_needs_a_value_for_each_knob(matmul: PrimFunc) -> None:
    with pytest.raises(TraceError, match="knob 'i_tile1' takes an integer of at least 1, got None"):
        tiled(matmul).trace.resolve({"i_tile0": 1})


def test_a_compute_location_is_a_loop_under_which_the_block_may_be_moved(matmul: PrimFunc) -> None:
    sch = Schedule(matmul)
    c = sch.get_block("C")
    i, j = sch.get_loops(sch.get_block("D"))
    assert [sch.sample_compute_location(c, decision=n).var for n in (0, 1)] == [i.var, j.var]
    sch.compute_at(c, sch.sample_compute_location(c))
    again = Trace.from_json(sch.trace.to_json()).apply(matmul)
    assert structural_equal(again.func, sch.func)
    arrays = interpret.random_inputs(matmul, 0)
    interpret.run(sch.func, arrays)
    assert interpret.check(interpret.expected(matmul, arrays), arrays).ok


def test_a_block_that_can_be_moved_nowhere_has_no_compute_location(matmul: PrimFunc) -> None:
    sch = Schedule(matmul)
    with pytest.raises(ScheduleError, match="'D' may be moved under no loop of its readers"):
        sch.sample_compute_location(sch.get_block("D"))


def test_a_decision_beyond_the_places_is_refused(matmul: PrimFunc) -> None:
    sch = Schedule(matmul)
    with pytest.raises(ScheduleError, match=r"decision 2 is none of the 2 places \(i, j\)"):
        sch.sample_compute_location(sch.get_block("C"), decision=2)


def test_an_enumeration_takes_every_combination_once() -> None:
    seen: list[tuple[str, ...]] = []
    path: tuple[int, ...] | None = ()
    while path is not None:
        e = Enumeration(path)
        # The second choice exists under one alternative of the first only.
        if e.choose(["a", "b"], "first") == 1:
            e.choose(["x", "y", "z"], "second")
        seen.append(e.labels)
        path = e.next_path
    assert seen == [("a",), ("b", "x"), ("b", "y"), ("b", "z")]


def test_outside_of_a_search_the_first_structure_is_taken(matmul: PrimFunc) -> None:
    assert Schedule(matmul).sample_structure([np.add, np.multiply]) is np.add


@pytest.mark.parametrize("options", [[], "ab", 3])
def test_a_structure_is_sampled_from_a_list(matmul: PrimFunc, options: list[int]) -> None:
    with pytest.raises(ScheduleError, match="options are a list with something in it"):
        Schedule(matmul).sample_structure(options)


def test_a_sketch_prints_its_open_knobs(matmul: PrimFunc, golden: Callable[[str, str], None]) -> None:
    sch = Schedule(matmul)
    i, j, _ = sch.get_loops(sch.get_block("C"))
    sch.split(i, sch.sample_perfect_tile(i, 3, max_innermost_factor=4))
    sch.split(j, [None, sch.sample_categorical([2, 4], "width")])
    constraints = "\n".join(f"{c!r} <= 0" for c in sch.constraints)
    golden("sketch_of_sampled_factors", f"{sch}\n{sch.trace.script()}\n{constraints}\n")
    again = Trace.from_json(json.loads(json.dumps(sch.trace.to_json()))).apply(matmul)
    written = Schedule(matmul)
    exec(sch.trace.script(), {"sch": written})
    assert (str(again), again.trace) == (str(sch), sch.trace)
    assert (str(written), written.trace) == (str(sch), sch.trace)
