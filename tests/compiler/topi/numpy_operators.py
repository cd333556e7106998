"""The operators in NumPy, written down independently of te: float64 for floats, int64 for integers."""

import math

import numpy as np

ERF = np.vectorize(math.erf, otypes=[np.float64])
ACTIVATIONS = {
    "none": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "gelu": lambda x: 0.5 * x * (1 + ERF(x / math.sqrt(2))),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "silu": lambda x: x / (1 + np.exp(-x)),
}


def pair(x):
    return tuple(x) if isinstance(x, list) else (x, x)


def matmul(r, a, b):
    a = np.swapaxes(a, -1, -2) if r.get("transpose_a") else a
    b = np.swapaxes(b, -1, -2) if r.get("transpose_b") else b
    return a @ b


def dense(r, x, w, bias=None):
    y = x @ (w.T if r.get("weights") == "nk" else w)
    return ACTIVATIONS[r.get("activation", "none")](y if bias is None else y + bias)


def conv2d(r, x, w, bias=None):
    groups = r.get("groups", 1)
    if r.get("layout") == "NHWC":
        x, w = x.transpose(0, 3, 1, 2), w.transpose(3, 2, 0, 1)
    y = np.concatenate(
        [_conv(r, xg, wg) for xg, wg in zip(np.split(x, groups, 1), np.split(w, groups, 0), strict=True)], 1
    )
    return _finish(r, y, bias)


def depthwise_conv2d(r, x, w, bias=None):
    if r.get("layout") == "NHWC":
        x, w = x.transpose(0, 3, 1, 2), w.transpose(2, 0, 1)
    channels = [_conv(r, x[:, [c]], w[c][None, None]) for c in range(x.shape[1])]
    return _finish(r, np.concatenate(channels, 1), bias)


def _finish(r, y, bias):
    y = y if bias is None else y + bias[None, :, None, None]
    y = ACTIVATIONS[r.get("activation", "none")](y)
    return y.transpose(0, 2, 3, 1) if r.get("layout") == "NHWC" else y


def _conv(r, x, w):
    """Of one group, NCHW and OIHW."""
    (sh, sw), (ph, pw), (dh, dw) = (
        pair(r.get(n, d)) for n, d in (("stride", 1), ("pad", 0), ("dilation", 1))
    )
    x = np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)))
    kh, kw = w.shape[2:]
    oh, ow = (x.shape[2] - dh * (kh - 1) - 1) // sh + 1, (x.shape[3] - dw * (kw - 1) - 1) // sw + 1
    y = np.zeros((x.shape[0], w.shape[0], oh, ow), x.dtype)
    for i in range(kh):
        for j in range(kw):
            part = x[:, :, i * dh : i * dh + sh * oh : sh, j * dw : j * dw + sw * ow : sw][:, :, :oh, :ow]
            y += np.tensordot(w[:, :, i, j], part, ((1,), (1,))).transpose(1, 0, 2, 3)
    return y


def softmax(r, x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def layer_norm(r, x, gamma=1.0, beta=0.0):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(
        x.var(-1, keepdims=True) + r.get("epsilon", 1e-5)
    ) * gamma + beta


OPERATORS = {
    "matmul": matmul,
    "batch_matmul": matmul,
    "dense": dense,
    "conv2d": conv2d,
    "depthwise_conv2d": depthwise_conv2d,
    "softmax": softmax,
    "layer_norm": layer_norm,
    "add": lambda r, a, b: a + b,
    "elementwise": lambda r, x: ACTIVATIONS[r.get("activation", "relu")](x),
    "transpose": lambda r, x: x.transpose(r.get("axes")),
}


def run(request, inputs):
    """The operator's output on arrays of any dtype."""
    wide = [np.asarray(x, np.int64 if x.dtype.kind in "iu" else np.float64) for x in inputs]
    return OPERATORS[request["op"]](request, *wide)
