"""What a NumPy user would write for an operator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .measure import Array, Call, Contender

Arguments = dict[str, Any]


def contenders(p: Arguments, threads: int) -> dict[str, Contender]:
    """NumPy's way, if there is one that is not a Python loop; `p` is an operator with its defaults."""
    make = _MAKERS.get(p["op"])
    plain = p["dtype"] in ("float32", "float64", "int8", "uint8") if "dtype" in p else True
    if make is None or not plain or p.get("activation", "none") not in _ACTIVATIONS:
        return {}
    if p["op"] == "conv2d" and (p["groups"] != 1 or p["dilation"] != (1, 1)):
        return {}
    return {"numpy": Contender(lambda a: make(p, a), lambda returned, _: np.asarray(returned))}


_ACTIVATIONS = {
    "none": None,
    "relu": lambda x: np.maximum(x, 0, out=x),
    "relu6": lambda x: np.clip(x, 0, 6, out=x),
}


def _finish(p: Arguments, out: Array, bias: Array | None) -> Array:
    if bias is not None:
        np.add(out, bias, out=out)
    activation = _ACTIVATIONS[p.get("activation", "none")]
    return out if activation is None else activation(out)


def _product(p: Arguments, a: Sequence[Array]) -> Call:
    x, y = a[0], a[1]
    if p.get("transpose_a"):
        x = x.swapaxes(-1, -2)
    if p.get("transpose_b"):
        y = y.swapaxes(-1, -2)
    out = np.empty((*x.shape[:-1], y.shape[-1]), a[-1].dtype)
    if out.dtype != x.dtype:
        return lambda: np.matmul(x, y, out=out, dtype=out.dtype)
    return lambda: np.matmul(x, y, out=out)


def _dense(p: Arguments, a: Sequence[Array]) -> Call:
    x, w = a[0], a[1] if p["weights"] == "kn" else a[1].T
    bias = a[2] if p["bias"] else None
    out = np.empty((x.shape[0], w.shape[1]), x.dtype)
    return lambda: _finish(p, np.matmul(x, w, out=out), bias)


def _conv(p: Arguments, a: Sequence[Array]) -> Call:
    """Shifted views, one matmul for each kernel position."""
    x, w, bias = a[0], a[1], a[2] if p["bias"] else None
    first = p["layout"] == "NCHW"
    (sh, sw), (ph, pw) = p["stride"], p["pad"]
    kh, kw = (w.shape[2], w.shape[3]) if first else (w.shape[0], w.shape[1])
    oh, ow = (p["h"] + 2 * ph - kh) // sh + 1, (p["w"] + 2 * pw - kw) // sw + 1
    space = ((ph, ph), (pw, pw))
    pads = ((0, 0), (0, 0), *space) if first else ((0, 0), *space, (0, 0))
    taps = [np.ascontiguousarray(w[:, :, i, j] if first else w[i, j]) for i in range(kh) for j in range(kw)]
    if first and bias is not None:
        bias = bias[:, None]

    def run() -> object:
        image = np.pad(x, pads) if ph or pw else x
        out: Any = 0
        for n, tap in enumerate(taps):
            i, j = divmod(n, kw)
            rows, columns = slice(i, i + sh * oh, sh), slice(j, j + sw * ow, sw)
            if first:
                out = out + tap @ image[:, :, rows, columns].reshape(x.shape[0], x.shape[1], -1)
            else:
                out = out + image[:, rows, columns].reshape(x.shape[0], oh * ow, -1) @ tap
        return _finish(p, out, bias)

    return run


def _softmax(p: Arguments, a: Sequence[Array]) -> Call:
    x, out = a[0], np.empty_like(a[0])

    def run() -> object:
        np.subtract(x, x.max(1, keepdims=True), out=out)
        np.exp(out, out=out)
        return np.divide(out, out.sum(1, keepdims=True), out=out)

    return run


def _layer_norm(p: Arguments, a: Sequence[Array]) -> Call:
    x, gamma, beta = a[:3]
    eps = np.float32(p["epsilon"])

    def run() -> object:
        centred = x - x.mean(1, keepdims=True)
        scale = 1 / np.sqrt((centred * centred).mean(1, keepdims=True) + eps)
        return centred * scale * gamma + beta

    return run


def _norm(p: Arguments, a: Sequence[Array]) -> Call:
    x = a[0]
    return lambda: np.sqrt(np.einsum("bmn,bmn->b", x, x))


_MAKERS = {
    "matmul": _product,
    "batch_matmul": _product,
    "dense": _dense,
    "conv2d": _conv,
    "softmax": _softmax,
    "layer_norm": _layer_norm,
    "norm": _norm,
}
