"""Workloads whose sketches are looked at, small enough to interpret."""

from collections.abc import Mapping
from typing import Any

import pytest

from tilewright.compiler import topi
from tilewright.compiler.target import Target

WORKLOADS: Mapping[str, dict[str, Any]] = {
    "matmul": {"op": "matmul", "m": 19, "n": 37, "k": 12},
    "dense": {"op": "dense", "m": 5, "n": 24, "k": 16, "bias": True, "activation": "gelu"},
    "long matmul": {"op": "matmul", "m": 3, "n": 37, "k": 1024},
    "long dense": {"op": "dense", "m": 3, "n": 24, "k": 1026, "bias": True, "activation": "relu"},
    "rows by rows": {"op": "dense", "m": 5, "n": 7, "k": 37, "weights": "nk", "bias": True},
    "attention": {"op": "batch_matmul", "b": 2, "m": 9, "n": 17, "k": 16, "transpose_b": True},
    "conv2d": {
        "op": "conv2d",
        "ci": 4,
        "h": 9,
        "w": 9,
        "co": 8,
        "kh": 3,
        "kw": 3,
        "pad": 1,
        "activation": "relu",
    },
    "dense with constants": {
        "op": "dense",
        "m": 5,
        "n": 37,
        "k": 12,
        "weights": "nk",
        "bias": True,
        "constant_weights": True,
    },
    "int8 dense with constants": {
        "op": "dense",
        "m": 5,
        "n": 37,
        "k": 18,
        "weights": "nk",
        "dtype": "int8",
        "constant_weights": True,
    },
    "conv2d with constants": {
        "op": "conv2d",
        "ci": 4,
        "h": 7,
        "w": 9,
        "co": 10,
        "kh": 3,
        "kw": 3,
        "pad": 1,
        "groups": 2,
        "constant_weights": True,
    },
    "conv2d nhwc": {
        "op": "conv2d",
        "ci": 4,
        "h": 7,
        "w": 7,
        "co": 8,
        "kh": 3,
        "kw": 3,
        "pad": 1,
        "layout": "NHWC",
    },
    "depthwise": {
        "op": "depthwise_conv2d",
        "c": 8,
        "h": 6,
        "w": 6,
        "kh": 3,
        "kw": 3,
        "pad": 1,
        "layout": "NHWC",
    },
    "batch matmul": {"op": "batch_matmul", "b": 3, "m": 8, "n": 16, "k": 4},
    "softmax": {"op": "softmax", "m": 6, "n": 20},
    "layer norm": {"op": "layer_norm", "m": 6, "n": 20},
    "add": {"op": "add", "shape": [5, 37]},
    "transpose": {"op": "transpose", "shape": [6, 17], "axes": [1, 0]},
    "conv1d": {"op": "conv1d", "ci": 4, "w": 21, "co": 8, "kw": 3, "pad": 1},
    "conv3d": {
        "op": "conv3d",
        "ci": 2,
        "d": 4,
        "h": 5,
        "w": 6,
        "co": 8,
        "kd": 2,
        "kh": 3,
        "kw": 1,
        "layout": "NDHWC",
    },
    "transposed": {"op": "conv2d_transpose", "ci": 2, "h": 4, "w": 4, "co": 4, "kh": 3, "kw": 3, "stride": 2},
    "pool": {"op": "pool2d", "c": 3, "h": 9, "w": 9, "function": "avg", "window": 3, "pad": 1, "stride": 2},
    "pool beyond the image": {"op": "pool1d", "c": 2, "w": 33, "function": "avg", "window": 3, "pad": 2},
    "narrow pool": {
        "op": "pool1d",
        "c": 3,
        "w": 29,
        "function": "avg",
        "window": 2,
        "stride": 3,
        "dtype": "bfloat16",
    },
    "argmax": {"op": "reduce", "shape": [12, 20], "function": "argmax", "axes": [0]},
    "any": {"op": "reduce", "shape": [12, 20], "function": "any", "axes": [0], "dtype": "bool"},
    "argmax of one": {"op": "reduce", "shape": [1], "function": "argmax"},
    "total": {"op": "reduce", "shape": [12, 20], "function": "sum"},
    "prime": {"op": "matmul", "m": 7, "n": 13, "k": 11},
    "one": {"op": "matmul", "m": 1, "n": 1, "k": 1},
}


@pytest.fixture(params=WORKLOADS, ids=lambda n: n)
def workload(request: pytest.FixtureRequest) -> Any:
    return topi.create(WORKLOADS[request.param])


@pytest.fixture(params=["x86-64-v4", "x86-64-v3", "x86-64-v2"])
def target(request: pytest.FixtureRequest) -> Target:
    return Target.parse(f"llvm -mcpu={request.param}")
