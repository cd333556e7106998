"""What PyTorch runs for an operator: its function, and where it can pack constant weights, that too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .measure import Array, Call, Contender

Arguments = dict[str, Any]


def contenders(p: Arguments, threads: int) -> dict[str, Contender]:
    """PyTorch's calls; `p` is an operator with its defaults."""
    import torch

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    made: dict[str, Contender] = {}
    plain = _MAKERS.get(p["op"])
    if plain is not None and (p.get("dtype"), p["op"]) not in _ABSENT:
        made["torch"] = Contender(lambda a: plain(p, tensors(a)), lambda r, _: array(p, r))
    packed = _PACKED.get(p["op"])
    if packed is not None and p["dtype"] == "float32" and p["activation"] in ("none", "relu"):
        made["torch packed"] = Contender(lambda a: packed(p, tensors(a)), lambda r, _: array(p, r))
    return made


#: What its CPU build refuses.
_ABSENT = {("uint8", "matmul"), ("uint8", "batch_matmul")}


def tensors(arrays: Sequence[Array]) -> list[Any]:
    """Tensors on the same memory."""
    import torch

    return [
        torch.from_numpy(a.view(np.uint16)).view(torch.bfloat16)
        if a.dtype.name == "bfloat16"
        else torch.from_numpy(a)
        for a in arrays
    ]


def array(p: Arguments, returned: Any) -> Array:
    """What was computed, in the operator's layout."""
    if p.get("layout") in ("NHWC", "NWC", "NDHWC"):
        returned = returned.movedim(1, -1)
    if str(returned.dtype) == "torch.bfloat16":
        returned = returned.float()
    out: Array = returned.contiguous().numpy()
    return out


def _then(p: Arguments) -> Callable[[Any], Any]:
    import torch
    from torch.nn import functional as f

    known: dict[str, Callable[[Any], Any]] = {
        "none": lambda y: y,
        "relu": torch.relu_,
        "relu6": lambda y: f.hardtanh_(y, 0.0, 6.0),
        "gelu": f.gelu,
        "sigmoid": torch.sigmoid,
        "tanh": torch.tanh,
        "silu": f.silu,
    }
    return known[p["activation"]]


def _product(p: Arguments, t: list[Any]) -> Call:
    import torch

    x = t[0].transpose(-1, -2) if p["transpose_a"] else t[0]
    y = t[1].transpose(-1, -2) if p["transpose_b"] else t[1]
    if p["dtype"] == "int8":
        return lambda: torch._int_mm(x, y)
    return lambda: torch.matmul(x, y)


def _dense(p: Arguments, t: list[Any]) -> Call:
    from torch.nn import functional as f

    then = _then(p)
    w = t[1].T if p["weights"] == "kn" else t[1]
    bias = t[2] if p["bias"] else None
    return lambda: then(f.linear(t[0], w, bias))


def _conv(p: Arguments, t: list[Any]) -> Call:
    from torch.nn import functional as f

    then, bias = _then(p), t[2] if p["bias"] else None
    x, w, groups = _image(p, t)
    function = {3: f.conv1d, 4: f.conv2d, 5: f.conv3d}[x.ndim]
    return lambda: then(function(x, w, bias, p["stride"], p["pad"], p["dilation"], groups))


def _image(p: Arguments, t: list[Any]) -> tuple[Any, Any, int]:
    """Input, weights and groups with channels first, on the memory of channels last where the layout is."""
    import torch

    x, w = t[0], t[1]
    depthwise = p["op"] == "depthwise_conv2d"
    if not p["layout"].endswith("C"):
        return x, w.unsqueeze(1) if depthwise else w, p["c"] if depthwise else p["groups"]
    x = x.movedim(-1, 1)
    w = w.movedim(-1, 0).unsqueeze(1) if depthwise else w.movedim((-1, -2), (0, 1))
    if x.ndim == 4:
        w = w.contiguous(memory_format=torch.channels_last)
    return x, w, p["c"] if depthwise else p["groups"]


def _transposed(p: Arguments, t: list[Any]) -> Call:
    from torch.nn import functional as f

    then, bias = _then(p), t[2] if p["bias"] else None
    return lambda: then(f.conv_transpose2d(t[0], t[1], bias, p["stride"], p["pad"], p["output_pad"]))


def _softmax(p: Arguments, t: list[Any]) -> Call:
    import torch

    return lambda: torch.softmax(t[0], 1)


def _layer_norm(p: Arguments, t: list[Any]) -> Call:
    from torch.nn import functional as f

    return lambda: f.layer_norm(t[0], t[0].shape[1:], t[1], t[2], p["epsilon"])


def _elementwise(p: Arguments, t: list[Any]) -> Call:
    import torch

    then = torch.relu if p["activation"] == "relu" else _then(p)
    return lambda: then(t[0])


def _norm(p: Arguments, t: list[Any]) -> Call:
    import torch

    return lambda: torch.linalg.vector_norm(t[0], dim=(1, 2))


def _packed_dense(p: Arguments, t: list[Any]) -> Call:
    import torch

    w = (t[1].T if p["weights"] == "kn" else t[1]).contiguous()
    packed = torch.ops.mkldnn._reorder_linear_weight(w, p["m"])
    bias, activation = t[2] if p["bias"] else None, p["activation"]
    run = torch.ops.mkldnn._linear_pointwise
    return lambda: run(t[0], packed, bias, activation, [], "")


def _packed_conv(p: Arguments, t: list[Any]) -> Call:
    import torch

    x, w, groups = _image(p, t)
    window = (p["pad"], p["stride"], p["dilation"], groups)
    packed = torch.ops.mkldnn._reorder_convolution_weight(w, *window, list(x.shape))
    bias, activation = t[2] if p["bias"] else None, p["activation"]
    run = torch.ops.mkldnn._convolution_pointwise
    return lambda: run(x, packed, bias, *window, activation, [], "")


_PACKED = {"dense": _packed_dense, "conv2d": _packed_conv, "depthwise_conv2d": _packed_conv}
_MAKERS = {
    "matmul": _product,
    "batch_matmul": _product,
    "dense": _dense,
    "conv1d": _conv,
    "conv2d": _conv,
    "conv3d": _conv,
    "depthwise_conv2d": _conv,
    "conv2d_transpose": _transposed,
    "softmax": _softmax,
    "layer_norm": _layer_norm,
    "elementwise": _elementwise,
    "norm": _norm,
}
