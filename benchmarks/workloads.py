"""The workloads W1-W10: single-thread float32 kernels from the usual networks, as operators of the
library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Workload:
    """name, what it is, and the operator. `peer` names the function of peers.py that computes the same."""

    name: str
    title: str
    operator: Mapping[str, Any]
    peer: str


def _conv(layout: str, channels: int, size: int) -> dict[str, Any]:
    return {
        "op": "conv2d",
        "ci": channels,
        "h": size,
        "w": size,
        "co": channels,
        "kh": 3,
        "kw": 3,
        "pad": 1,
        "bias": True,
        "activation": "relu",
        "layout": layout,
    }


def _depthwise(layout: str) -> dict[str, Any]:
    return {
        "op": "depthwise_conv2d",
        "c": 128,
        "h": 28,
        "w": 28,
        "kh": 3,
        "kw": 3,
        "pad": 1,
        "layout": layout,
    }


_DENSE = {"op": "dense", "m": 128, "n": 3072, "k": 768, "bias": True, "activation": "relu"}

WORKLOADS: tuple[Workload, ...] = (
    Workload("W1", "matmul 1024x1024x1024", {"op": "matmul", "m": 1024, "n": 1024, "k": 1024}, "matmul"),
    Workload("W2", "matmul 512x512x512", {"op": "matmul", "m": 512, "n": 512, "k": 512}, "matmul"),
    Workload("W3", "matmul 16x1024x1024", {"op": "matmul", "m": 16, "n": 1024, "k": 1024}, "matmul"),
    Workload("W4", "dense 128x768 -> 3072, bias, relu", _DENSE, "dense_relu"),
    Workload("W5", "conv2d 64x56x56 -> 64, 3x3, bias, relu, NHWC", _conv("NHWC", 64, 56), "conv_nhwc"),
    Workload("W5n", "the same, NCHW", _conv("NCHW", 64, 56), "conv_nchw"),
    Workload("W6", "conv2d 256x14x14 -> 256, 3x3, bias, relu, NCHW", _conv("NCHW", 256, 14), "conv_nchw"),
    Workload("W7", "depthwise 128x28x28, 3x3, NHWC", _depthwise("NHWC"), "depthwise_nhwc"),
    Workload("W7n", "the same, NCHW", _depthwise("NCHW"), "depthwise_nchw"),
    Workload("W8", "softmax over rows, 512x1024", {"op": "softmax", "m": 512, "n": 1024}, "softmax"),
    Workload("W9", "layer norm over rows, 512x768", {"op": "layer_norm", "m": 512, "n": 768}, "layer_norm"),
    Workload(
        "W10",
        "batch matmul 12x128x64x128",
        {"op": "batch_matmul", "b": 12, "m": 128, "n": 128, "k": 64},
        "matmul",
    ),
)
