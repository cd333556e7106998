"""What the reference takes is known before it is computed, and large workloads stay within 2 GiB."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from tilewright.compiler.interpret import Footprint, expected, footprint, random_inputs
from tilewright.compiler.topi import create

SHAPES: list[dict[str, Any]] = [
    {"op": "matmul", "m": 1024, "n": 1024, "k": 1024},
    {"op": "matmul", "m": 3000, "n": 2000, "k": 8},
    {"op": "matmul", "m": 512, "n": 512, "k": 512, "dtype": "int8"},
    {"op": "conv2d", "n": 1, "ci": 32, "h": 56, "w": 56, "co": 64, "kh": 3, "kw": 3, "pad": 1},
    {"op": "softmax", "m": 1024, "n": 1024},
    {"op": "layer_norm", "m": 1024, "n": 1024},
    {"op": "elementwise", "shape": [256, 1024], "activation": "gelu"},
]


@pytest.mark.parametrize("spec", SHAPES, ids=lambda spec: f"{spec['op']}-{spec.get('dtype', 'float32')}")
def test_a_reference_takes_no_more_than_its_footprint(spec: dict[str, Any]) -> None:
    func = create(spec)
    tracemalloc.start()
    try:
        expected(func, random_inputs(func, 0))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # The interpreter itself takes a little, whatever the shapes.
    assert peak <= footprint(func).working + (2 << 20)


def test_a_footprint_keeps_the_arrays_the_outputs_and_their_tolerances() -> None:
    func = create({"op": "matmul", "m": 4, "n": 8, "k": 2})
    assert footprint(func).kept == 4 * (4 * 2 + 2 * 8 + 4 * 8) + (8 + 8) * (4 * 8)


def test_the_total_is_what_is_kept_and_what_is_worked_with() -> None:
    assert Footprint(3, 4).total == 7


def test_a_product_of_4096_by_4096_fits_two_gibibytes() -> None:
    func = create({"op": "matmul", "m": 4096, "n": 4096, "k": 4096})
    assert footprint(func).total < 2 << 30


def test_sums_of_few_terms_are_computed_in_boxes_too() -> None:
    narrow, wide = (footprint(create({"op": "matmul", "m": m, "n": m, "k": 4})) for m in (2048, 8192))
    outputs = 4 * 4 + 8 * 3  # the array, and the values, bounds and tolerances beside it
    assert wide.working - narrow.working < 2 * outputs * (8192**2 - 2048**2)
