"""What NumPy, PyTorch and onnxruntime need to compute the workloads; a peer that is not installed is said to
be missing."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float32]]
Call = Callable[[], object]

NAMES = ("numpy", "torch", "onnxruntime")


def missing() -> list[str]:
    """The peers that are not installed."""
    needs = {"onnxruntime": ("onnxruntime", "onnx")}
    return [n for n in NAMES if any(importlib.util.find_spec(m) is None for m in needs.get(n, (n,)))]


def versions() -> dict[str, str]:
    """The version of every peer that is there."""
    return {n: __import__(n).__version__ for n in NAMES if n not in missing()}


def calls(kind: str, arrays: Sequence[Array]) -> dict[str, Call]:
    """For each peer that can compute the workload, a call that does it once; `arrays` are the inputs, without
    the output."""
    made: dict[str, Call | None] = {"numpy": _numpy(kind, arrays)}
    absent = missing()
    if "torch" not in absent:
        made["torch"] = _torch(kind, arrays)
    if "onnxruntime" not in absent:
        made["onnxruntime"] = _onnxruntime(kind, arrays)
    return {n: c for n, c in made.items() if c is not None}


def _numpy(kind: str, a: Sequence[Array]) -> Call | None:
    if kind == "matmul":
        out = np.empty((*a[0].shape[:-1], a[1].shape[-1]), np.float32)
        return lambda: np.matmul(a[0], a[1], out=out)
    if kind == "dense_relu":
        out = np.empty((a[0].shape[0], a[1].shape[1]), np.float32)

        def dense() -> object:
            np.matmul(a[0], a[1], out=out)
            np.add(out, a[2], out=out)
            return np.maximum(out, 0, out=out)

        return dense
    if kind in ("conv_nchw", "conv_nhwc"):
        return _numpy_conv(kind, a)
    if kind == "softmax":
        out = np.empty_like(a[0])

        def softmax() -> object:
            np.subtract(a[0], a[0].max(1, keepdims=True), out=out)
            np.exp(out, out=out)
            return np.divide(out, out.sum(1, keepdims=True), out=out)

        return softmax
    if kind == "layer_norm":
        eps = np.float32(1e-5)

        def layer_norm() -> object:
            centred = a[0] - a[0].mean(1, keepdims=True)
            scale = 1 / np.sqrt((centred * centred).mean(1, keepdims=True) + eps)
            return centred * scale * a[1] + a[2]

        return layer_norm
    return None


def _numpy_conv(kind: str, a: Sequence[Array]) -> Call:
    """Shifted views, one matmul for each kernel position: what a NumPy user would write."""
    x, w, bias = a
    first = kind == "conv_nchw"
    kh, kw = (w.shape[2], w.shape[3]) if first else (w.shape[0], w.shape[1])
    pads = ((0, 0), (kh // 2,) * 2, (kw // 2,) * 2)
    taps = [np.ascontiguousarray(w[:, :, i, j] if first else w[i, j]) for i in range(kh) for j in range(kw)]

    def run() -> object:
        image = np.pad(x[0], pads if first else (*pads[1:], (0, 0)))
        h, v = (x.shape[2], x.shape[3]) if first else (x.shape[1], x.shape[2])
        out: Any = 0
        for n, tap in enumerate(taps):
            i, j = divmod(n, kw)
            if first:
                part = image[:, i : i + h, j : j + v].reshape(x.shape[1], -1)
                out = out + tap @ part
            else:
                out = out + image[i : i + h, j : j + v].reshape(h * v, -1) @ tap
        return np.maximum(out + (bias[:, None] if first else bias), 0)

    return run


def _torch(kind: str, a: Sequence[Array]) -> Call | None:
    import torch
    from torch.nn import functional as f

    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    t = [torch.from_numpy(x) for x in a]
    if kind == "matmul":
        return lambda: torch.matmul(t[0], t[1])
    if kind == "dense_relu":
        return lambda: torch.relu_(torch.addmm(t[2], t[0], t[1]))
    if kind == "softmax":
        return lambda: torch.softmax(t[0], 1)
    if kind == "layer_norm":
        return lambda: f.layer_norm(t[0], t[0].shape[1:], t[1], t[2])
    last = kind.endswith("nhwc")
    image = t[0].permute(0, 3, 1, 2) if last else t[0]
    if kind.startswith("conv"):
        kernel = t[1].permute(3, 2, 0, 1) if last else t[1]
        if last:
            kernel = kernel.contiguous(memory_format=torch.channels_last)
        return lambda: torch.relu_(f.conv2d(image, kernel, t[2], padding=1))
    kernel = (t[1].permute(2, 0, 1) if last else t[1]).unsqueeze(1).contiguous()
    return lambda: f.conv2d(image, kernel, padding=1, groups=kernel.shape[0])


def _onnxruntime(kind: str, a: Sequence[Array]) -> Call | None:
    """A model of one or two nodes; weights and biases are constants, as in a deployed model."""
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    kinds: dict[str, tuple[str, dict[str, Any], bool]] = {
        "matmul": ("MatMul", {}, False),
        "dense_relu": ("Gemm", {}, True),
        "conv_nchw": ("Conv", {"pads": [1, 1, 1, 1]}, True),
        "softmax": ("Softmax", {"axis": 1}, False),
        "layer_norm": ("LayerNormalization", {"axis": 1}, False),
    }
    weights = list(a[1:])
    if kind == "depthwise_nchw":
        op, attributes, relu = "Conv", {"pads": [1, 1, 1, 1], "group": a[1].shape[0]}, False
        weights = [np.ascontiguousarray(a[1][:, None])]
    elif kind in kinds:
        op, attributes, relu = kinds[kind]
    else:
        return None
    constant = kind != "matmul"
    names = ["x", *(f"w{n}" for n in range(len(weights)))]
    nodes = [helper.make_node(op, names, ["t" if relu else "y"], **attributes)]
    if relu:
        nodes.append(helper.make_node("Relu", ["t"], ["y"]))
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, a[0].shape)]
    feeds = {"x": a[0]}
    fixed = []
    for name, w in zip(names[1:], weights, strict=True):
        if constant:
            fixed.append(numpy_helper.from_array(w, name))
        else:
            inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, w.shape))
            feeds[name] = w
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * a[0].ndim)]
    graph = helper.make_graph(nodes, "g", inputs, outputs, fixed)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    providers = ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=providers)
    return lambda: session.run(None, feeds)
