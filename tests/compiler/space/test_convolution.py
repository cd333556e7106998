"""The sketches of convolutions and pooling: what they are, and that each keeps the meaning."""

from math import prod
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.compiler import interpret, topi
from tilewright.compiler.passes.pipeline import lowering
from tilewright.compiler.passes.split_ahead import split_ahead
from tilewright.compiler.space import default_schedule, space_of
from tilewright.compiler.space.window_tiles import strips
from tilewright.compiler.target import Target

HOST = Target.parse("llvm -mcpu=x86-64-v4")
CONV = {"op": "conv2d", "ci": 8, "h": 14, "w": 14, "co": 32, "kh": 3, "kw": 3, "pad": 1}
DEPTHWISE = {"op": "depthwise_conv2d", "c": 16, "h": 14, "w": 14, "kh": 3, "kw": 3, "pad": 1}
POINTWISE = {"op": "conv2d", "ci": 8, "h": 14, "w": 14, "co": 32, "kh": 1, "kw": 1}


def names(request: dict[str, Any]) -> list[str]:
    return [s.name for s in space_of(topi.create(request), Target.parse("llvm -mcpu=x86-64-v4")).sketches]


def test_channels_last_have_lanes_along_output_channels_packed_or_not() -> None:
    assert names({**CONV, "layout": "NHWC"}) == ["lanes o, strip pad", "lanes o, pack W, strip pad"]


def test_channels_first_have_packed_weights_or_lanes_along_a_row() -> None:
    assert names(CONV) == [
        "lanes o, pack W, strip pad",
        "lanes o, pack W, strip pad, window inside",
        "lanes w, strip pad, window inside",
    ]


def test_depthwise_windows_are_padded_by_guards_or_in_strips() -> None:
    assert names(DEPTHWISE) == ["lanes w, inline pad", "lanes w, strip pad"]
    assert "lanes c, inline pad" in names({**DEPTHWISE, "layout": "NHWC"})


def test_windows_of_one_element_are_matrix_products() -> None:
    assert [n.partition(",")[0] for n in names({**POINTWISE, "layout": "NHWC"})][:1] == ["places as one"]
    assert "places as one, lanes h_w" in names(POINTWISE)


def test_groups_stand_apart_from_their_channels() -> None:
    assert names({**CONV, "groups": 2})[0].startswith("groups apart, lanes o_1")


CONV3D = {"op": "conv3d", "ci": 4, "d": 5, "h": 6, "w": 7, "co": 16, "kd": 2, "kh": 3, "kw": 3, "pad": 1}
POOL = {"op": "pool2d", "c": 16, "h": 15, "w": 15, "function": "max", "window": 3, "stride": 2}
TRANSPOSED = {"op": "conv2d_transpose", "ci": 4, "h": 7, "w": 7, "co": 16, "kh": 3, "kw": 3, "stride": 2}

SHAPES: dict[str, dict[str, Any]] = {
    "nchw": CONV,
    "nhwc": {**CONV, "layout": "NHWC", "bias": True, "activation": "relu"},
    "7x7": {**CONV, "h": 7, "w": 7, "bias": True, "activation": "relu"},
    "three channels": {**CONV, "ci": 3, "h": 15, "w": 15, "kh": 7, "kw": 7, "pad": 3, "stride": 2},
    "three channels last": {**CONV, "ci": 3, "h": 15, "w": 15, "layout": "NHWC", "stride": 2},
    "prime": {**CONV, "ci": 7, "co": 13, "h": 11, "w": 13},
    "prime last": {**CONV, "ci": 7, "co": 13, "h": 11, "w": 13, "layout": "NHWC"},
    "strided": {**CONV, "stride": 2, "h": 15, "w": 13},
    "strided pointwise": {**POINTWISE, "stride": 2},
    "dilated": {**CONV, "dilation": 2, "pad": 2, "layout": "NHWC"},
    "groups": {**CONV, "groups": 4},
    "groups of 24": {**CONV, "groups": 2, "co": 48, "layout": "NHWC"},
    "channel groups of 24": {**CONV, "groups": 2, "co": 48, "bias": True},
    "batch": {**CONV, "n": 2, "h": 6},
    "one place": {**CONV, "h": 3, "w": 3, "pad": 0},
    "one row": {**CONV, "h": 1, "w": 40, "kh": 1, "pad": 0},
    "one channel": {**CONV, "ci": 1, "co": 1},
    "pointwise": {**POINTWISE, "bias": True, "activation": "relu"},
    "pointwise 7x7": {**POINTWISE, "h": 7, "w": 7},
    "pointwise last": {**POINTWISE, "h": 7, "w": 7, "layout": "NHWC", "bias": True},
    "padded pointwise": {**POINTWISE, "pad": 1},
    "integers": {**CONV, "dtype": "int8"},
    "half": {**CONV, "dtype": "float16", "layout": "NHWC"},
    "double": {**CONV, "dtype": "float64"},
    "depthwise": DEPTHWISE,
    "depthwise last": {**DEPTHWISE, "layout": "NHWC", "stride": 2, "c": 20},
    "depthwise strided": {**DEPTHWISE, "stride": 2, "h": 15, "bias": True, "activation": "relu"},
    "depthwise 5x5": {**DEPTHWISE, "kh": 5, "kw": 5, "pad": 2, "h": 7, "w": 7},
    "conv1d": {"op": "conv1d", "ci": 5, "w": 50, "co": 20, "kw": 5, "pad": 2, "stride": 2},
    "conv1d last": {"op": "conv1d", "ci": 5, "w": 50, "co": 20, "kw": 5, "layout": "NWC", "dilation": 3},
    "conv3d": CONV3D,
    "conv3d last": {**CONV3D, "kh": 1, "layout": "NDHWC", "stride": 2},
    "transposed": TRANSPOSED,
    "transposed constant": {**TRANSPOSED, "constant_weights": True, "bias": True, "pad": 1},
    "transposed even": {**TRANSPOSED, "kh": 4, "kw": 4, "pad": 1, "co": 3, "h": 9, "w": 17},
    "transposed by three": {**TRANSPOSED, "kh": 2, "kw": 5, "stride": [3, 2], "output_pad": [2, 0]},
    "max pool": {**POOL, "pad": 1},
    "max pool last": {**POOL, "layout": "NHWC"},
    "mean pool": {"op": "pool2d", "c": 5, "h": 16, "w": 16, "function": "avg", "window": 2},
    "mean of all": {"op": "pool2d", "c": 20, "h": 7, "w": 7, "function": "avg", "window": 7},
    "pool3d": {"op": "pool3d", "c": 4, "d": 6, "h": 6, "w": 18, "function": "max", "window": 2},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_candidates_of_every_sketch_keep_the_meaning(shape: str) -> None:
    func = topi.create(SHAPES[shape])
    inputs = interpret.random_inputs(func, 0)
    expected = interpret.expected(func, [a.copy() for a in inputs])
    for n, cpu in enumerate(("x86-64-v4", "x86-64-v3")):
        target = Target.parse(f"llvm -mcpu={cpu}")
        space = space_of(func, target)
        assert not any("window" in name for name in space.refused)
        for sketch in space.sketches[n::2] or space.sketches:
            rows = sketch.columns.random(1, np.random.default_rng(len(shape)))
            assert len(rows), sketch.name
            arrays = [a.copy() for a in inputs]
            tw.build(sketch.resolve(rows[0]).apply(func), target=target)(*arrays)
            checked = interpret.check(expected, arrays)
            assert checked.ok, f"{sketch.name} {sketch.config(rows[0])}: {checked}"


INTEGERS = {**CONV, "dtype": "int8", "h": 9, "w": 11}


def test_channels_that_lie_apart_are_copied_side_by_side_for_dot_products() -> None:
    target = Target.parse("llvm -mcpu=cascadelake")
    found = [s.name for s in space_of(topi.create(INTEGERS), target).sketches]
    assert found == ["channels last, dot product over c, lanes o"]
    last = [s.name for s in space_of(topi.create({**INTEGERS, "layout": "NHWC"}), target).sketches]
    assert last == ["dot product over c, lanes o"]
    # Three channels fill no word.
    few = [s.name for s in space_of(topi.create({**INTEGERS, "ci": 3}), target).sketches]
    assert "lanes o, pack W, strip pad" in few


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"constant_weights": True, "bias": True},
        {"pad": 0, "stride": 2},
        {"kh": 1, "kw": 1, "pad": 0, "stride": 2, "constant_weights": True},
        {"dtype": "bfloat16", "dilation": 2, "pad": 2},
        {"co": 19, "constant_weights": True},
    ],
    ids=str,
)
def test_dot_products_over_channels_that_lie_apart_keep_the_meaning(more: dict[str, Any]) -> None:
    func = topi.create({**INTEGERS, **more})
    inputs = interpret.random_inputs(func, 3)
    expected = interpret.expected(func, [a.copy() for a in inputs])
    for sketch in space_of(func, Target.parse("llvm")).sketches[:2]:
        for row in sketch.columns.random(3, np.random.default_rng(7)):
            arrays = [a.copy() for a in inputs]
            tw.build(sketch.resolve(row).apply(func), target="llvm")(*arrays)
            assert interpret.check(expected, arrays).ok, f"{sketch.name} {sketch.config(row)}"


def test_a_transposed_convolution_multiplies_no_zero_between_its_inputs() -> None:
    func = topi.create({**TRANSPOSED, "kh": 4, "kw": 4, "h": 6, "w": 5})
    main = max((b for _, b in func.blocks()), key=lambda b: len(b.iters))
    steps = prod(it.extent.const or 0 for it in main.iters)
    # Each input meets each tap for each pair of channels; one place more along each side lies at the border.
    assert steps == 4 * 16 * (6 + 1) * (5 + 1) * 4 * 4


def test_what_is_made_of_constants_alone_is_made_before_the_calls() -> None:
    func = topi.create({**TRANSPOSED, "constant_weights": True})
    kernel, packing = split_ahead(lowering(HOST).run(default_schedule(func, HOST).func))
    assert packing is not None and "taps" not in {b.buffer.name for _, b in kernel.blocks()}


@pytest.mark.parametrize("shape", ["nchw", "nhwc", "depthwise", "pointwise"])
def test_the_default_is_one_of_them_and_right(shape: str) -> None:
    func = topi.create(SHAPES[shape])
    arrays = interpret.random_inputs(func, 1)
    expected = interpret.expected(func, [a.copy() for a in arrays])
    tw.build(default_schedule(func, Target.parse("llvm")), target="llvm")(*arrays)
    assert interpret.check(expected, arrays).ok


def test_a_strip_may_be_the_whole_of_a_short_image() -> None:
    assert [strips(n) for n in (3, 14, 28, 56)] == [
        (1, 2, 3),
        (1, 2, 4, 7, 8, 14),
        (1, 2, 4, 7, 8, 14, 28),
        (1, 2, 4, 7, 8, 14, 28),
    ]
    sketch = space_of(topi.create(CONV), Target.parse("llvm -mcpu=x86-64-v4")).sketches[0]
    rows = [k.name for k in sketch.knobs].index("h_t")
    assert 14 in sketch.columns.random(400, np.random.default_rng(0))[:, rows]
