"""Index maps, paddings and alignments that are refused."""

from typing import Any

import pytest

from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.schedule import Schedule, ScheduleError, Trace, TraceError

from .refusing import reason_of

REFUSED: dict[str, tuple[object, str]] = {
    "lost": (lambda i, j: (i,), "the index map is not one to one: j is lost"),
    "lost remainder": (lambda i, j: (i // 2, j), "the index map is not one to one: i % 2 is lost"),
    "twice": (lambda i, j: (i, i, j), "the index map is not one to one: i is kept twice"),
    "gaps": (
        lambda i, j: (i * 2, j),
        "the index map is not one to one onto a box: i * 2 leaves gaps or meets",
    ),
    "meeting": (
        lambda i, j: (i + j, j // 2),
        "the index map is not one to one: j // 2 is kept twice",
    ),
    "shifted": (
        lambda i, j: (i + 1, j),
        "(i + 1) leaves 1 of 11 elements of its box without an index; "
        "fuse and split in two steps, so that only tails are padded",
    ),
    "products": (lambda i, j: (i * j, j), "an index is multiplied by integers only"),
    "division": (
        lambda i, j: (i // 0, j),
        "an index is divided by positive integers up to 2**31, got // 0",
    ),
    "floats": (
        lambda i, j: (i * 1.5, j),
        "an index map computes with indices and integers up to 2**31, got * 1.5",
    ),
    "rank": (lambda i: (i,), "the index map does not take 2 indices"),
    "no list": (lambda i, j: 3, "an index map answers a list of indices, got 3"),
    "no function": ([1, 0], "an index map is a function of indices, got [1, 0]"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_map_that_is_not_one_to_one_is_refused(chain: PrimFunc, case: str) -> None:
    sch = Schedule(chain)
    block = sch.get_block("B")
    function, reason = REFUSED[case]
    assert reason_of(lambda: sch.transform_layout(block, 0, function)) == f"transform_layout: {reason}"  # type: ignore[arg-type]


def test_the_layout_of_a_parameter_is_the_callers(chain: PrimFunc) -> None:
    sch = Schedule(chain)
    block = sch.get_block("C")
    advice = (
        "C is a parameter, whose layout is the caller's; cache_write the block, or cache_read where it is "
        "read, and change the copy"
    )
    assert reason_of(lambda: sch.transform_layout(block, 0, lambda i, j: (j, i))) == (
        f"transform_layout: {advice}"
    )
    assert reason_of(lambda: sch.storage_align(block, 0, 0, 8, 1)) == f"storage_align: {advice}"


@pytest.mark.parametrize("value", ["much", 2**60 + 1, [0], True, 1e300])
def test_padding_is_a_value_of_the_dtype(chain: PrimFunc, value: object) -> None:
    sch = Schedule(chain)
    block = sch.get_block("B")
    assert reason_of(lambda: sch.transform_layout(block, 0, lambda i, j: (j, i), value)) == (  # type: ignore[arg-type]
        f"transform_layout: {value!r} is no value of float32, which B holds"
    )


def test_a_map_that_mixes_steps_and_elements_is_refused(matmul: PrimFunc) -> None:
    sch = Schedule(matmul)
    block = sch.get_block("C")
    assert reason_of(lambda: sch.transform_block_layout(block, lambda i, j, k: (i, j * 8 + k))) == (
        "transform_block_layout: j * 8 + k mixes spatial and reduction steps of 'C'"
    )


def test_a_block_whose_loops_were_split_is_not_transformed(chain: PrimFunc) -> None:
    sch = Schedule(chain)
    block = sch.get_block("C")
    i, _ = sch.get_loops(block)
    sch.split(i, [None, 4])
    assert reason_of(lambda: sch.transform_block_layout(block, lambda i, j: (j, i))) == (
        "transform_block_layout: 'C' takes 'i' from i_0 * 4 + i_1, which is no loop of its own; "
        "do this before its loops are split, fused or moved"
    )


def test_a_map_without_a_known_way_back_does_not_make_loops(chain: PrimFunc) -> None:
    sch = Schedule(chain)
    block = sch.get_block("C")
    assert reason_of(lambda: sch.transform_block_layout(block, lambda i, j: ((i + j) % 10, j))) == (
        "transform_block_layout: the way back from ((i + j) % 10, j) is not known; "
        "divide single indices, in several steps if need be"
    )


@pytest.mark.parametrize(
    ("axis", "factor", "offset", "reason"),
    [
        (2, 8, 0, "B has 2 dimensions; there is no axis 2"),
        (1, 8, 0, "elements of the last dimension of B are next to each other; align another"),
        (0, 0, 0, "factor is a number of elements from 1 to 4096, got 0"),
        (0, 8, 8, "offset is a number of elements from 0 to 7, got 8"),
    ],
)
def test_an_alignment_that_does_not_exist_is_refused(
    chain: PrimFunc, axis: int, factor: int, offset: int, reason: str
) -> None:
    sch = Schedule(chain)
    block = sch.get_block("B")
    assert reason_of(lambda: sch.storage_align(block, 0, axis, factor, offset)) == f"storage_align: {reason}"


def test_the_keys_of_alignments_are_not_annotated_by_hand(chain: PrimFunc) -> None:
    sch = Schedule(chain)
    block = sch.get_block("B")
    assert reason_of(lambda: sch.annotate(block, "align_0", "8+1")) == (
        "annotate: the key 'align_0' belongs to a step of its own"
    )


@pytest.mark.parametrize(
    ("index_map", "message", "at"),
    [
        ([], "an index map has from 1 to 32 outputs, got 0", ""),
        ("i", "expected an array, got 'i'", ""),
        ([[[1, -1]]], "an index of a map is a number from 0, got -1", "/0/0/1"),
        ([[[1, ["mod", 0, 4]]]], "an atom is the number of an index, or ['floordiv', a, b]", "/0/0/1"),
        ([[[1, ["floordiv", [[1, 0]], 0]]]], "the divisor must be at least 1, got 0", "/0/0/1/2"),
        ([[[1.5, 0]]], "expected an integer up to 2**31, got 1.5", "/0/0/0"),
    ],
)
def test_a_map_in_a_trace_is_checked(index_map: object, message: str, at: str) -> None:
    steps = [
        {"do": "get_block", "block": 0, "out": ["b0"]},
        {"do": "transform_layout", "block": "b0", "index": 0, "index_map": index_map},
    ]
    with pytest.raises(TraceError) as caught:
        Trace.from_json({"version": 1, "steps": steps})
    assert str(caught.value) == f"{message} (at /steps/1/index_map{at})"


@pytest.mark.parametrize(
    "map_",
    [
        lambda i, j: (i / 2, j),
        lambda i, j: (i**2, j),
        lambda i, j: (abs(i), j),
        lambda i, j: (i < 3, j),
        lambda i, j: (i, j) if i == 0 else (j, i),
        lambda i, j: (i ^ j, j),
        lambda i, j: (i, j) if i else (j, i),
    ],
)
def test_a_map_that_does_more_than_index_arithmetic_is_refused(chain: PrimFunc, map_: Any) -> None:
    sch = Schedule(chain)
    block = sch.get_block("B")
    with pytest.raises(ScheduleError, match=r"an index map takes|an index has no value") as caught:
        sch.transform_layout(block, 0, map_)
    assert caught.value.span is not None
