"""An onnxruntime session of one or two nodes for an operator; weights and biases are constants, as in a
deployed model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .measure import Array, Call, Contender

Arguments = dict[str, Any]


@dataclass
class _Model:
    """node: the operator. attributes: its attributes. weights: the arrays behind the first, constant unless
    `fed`. after: nodes that follow, each on the result of the one before."""

    node: str
    attributes: dict[str, Any] = field(default_factory=dict)
    weights: list[Array] = field(default_factory=list)
    fed: bool = False
    after: tuple[str, ...] = ()


def contenders(p: Arguments, threads: int) -> dict[str, Contender]:
    """onnxruntime's session where ONNX has the operator in that layout and dtype; `p` is an operator with its
    defaults."""
    if _model(p, None) is None:
        return {}
    return {"onnxruntime": Contender(lambda a: _session(p, a, threads), lambda r, _: np.asarray(r[0]))}  # type: ignore[index]


def _model(p: Arguments, a: Sequence[Array] | None) -> _Model | None:
    """The nodes for the operator; without arrays only whether there are any."""
    weights = list(a[1:-1]) if a is not None else []
    after = {"none": (), "relu": ("Relu",), "relu6": ("Clip",), "sigmoid": ("Sigmoid",), "tanh": ("Tanh",)}
    follows = after.get(p.get("activation", "none"))
    name, dtype = p["op"], p.get("dtype", "float32")
    if name in ("matmul", "batch_matmul") and not p["transpose_a"]:
        if p["transpose_b"] and weights:
            weights = [np.ascontiguousarray(weights[0].swapaxes(-1, -2))]
        if dtype == "int8" or dtype == "uint8":
            return _Model("MatMulInteger", {}, weights)
        if dtype in ("float32", "float16"):
            # Both operands of a product of activations change; a transposed one is a weight.
            return _Model("MatMul", {}, weights, fed=not p["transpose_b"])
    if dtype != "float32" or follows is None:
        return _Model("Gelu") if name == "elementwise" and p["activation"] == "gelu" else None
    if name == "dense":
        return _Model("Gemm", {"transB": int(p["weights"] == "nk")}, weights, after=follows)
    if name in ("conv1d", "conv2d", "conv3d", "depthwise_conv2d") and p["layout"].startswith("NC"):
        rank = 2 if name.startswith("depthwise") else int(name[4])
        window = {k: _each(p[k], rank) for k in ("stride", "pad", "dilation")}
        groups = p["c"] if name.startswith("depthwise") else p["groups"]
        if weights and name.startswith("depthwise"):
            weights[0] = np.ascontiguousarray(weights[0][:, None])
        attributes = {
            "strides": window["stride"],
            "pads": window["pad"] * 2,
            "dilations": window["dilation"],
            "group": groups,
        }
        return _Model("Conv", attributes, weights, after=follows)
    if name == "conv2d_transpose":
        attributes = {
            "strides": _each(p["stride"], 2),
            "pads": _each(p["pad"], 2) * 2,
            "output_padding": _each(p["output_pad"], 2),
        }
        return _Model("ConvTranspose", attributes, weights, after=follows)
    if name == "softmax":
        return _Model("Softmax", {"axis": 1})
    if name == "layer_norm":
        return _Model("LayerNormalization", {"axis": 1, "epsilon": p["epsilon"]}, weights)
    if name == "norm":
        return _Model("ReduceL2", {"keepdims": 0, "axes": [1, 2]})
    return _Model(follows[0]) if name == "elementwise" and follows and follows != ("Clip",) else None


def _each(value: Any, rank: int) -> list[int]:
    return [value] * rank if isinstance(value, int) else list(value)


def _session(p: Arguments, a: Sequence[Array], threads: int) -> Call:
    import onnx
    import onnxruntime
    from onnx import helper, numpy_helper

    model = _model(p, a)
    assert model is not None
    kind = helper.np_dtype_to_tensor_dtype
    feeds = {"x": a[0]}
    fixed = []
    names = ["x", *(f"w{n}" for n in range(len(model.weights)))]
    for name, w in zip(names[1:], model.weights, strict=True):
        if model.fed:
            feeds[name] = w
        else:
            fixed.append(numpy_helper.from_array(w, name))
    inputs = [helper.make_tensor_value_info(n, kind(x.dtype), x.shape) for n, x in feeds.items()]
    operator, attributes = model.node, dict(model.attributes)
    if operator == "ReduceL2":
        fixed.append(numpy_helper.from_array(np.array(attributes.pop("axes"), np.int64), "axes"))
        names.append("axes")
    nodes = [helper.make_node(operator, names, ["t0"], **attributes)]
    for n, after in enumerate(model.after):
        more = []
        if after == "Clip":
            fixed += [numpy_helper.from_array(np.float32(v), f"c{v}") for v in (0, 6)]
            more = ["c0", "c6"]
        nodes.append(helper.make_node(after, [f"t{n}", *more], [f"t{n + 1}"]))
    last = f"t{len(model.after)}"
    out = helper.make_tensor_value_info(last, kind(a[-1].dtype), [None] * a[-1].ndim)
    graph = helper.make_graph(nodes, "g", inputs, [out], fixed)
    built = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.checker.check_model(built)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(
        built.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return lambda: session.run(None, feeds)
