"""The operators in NumPy, written down independently of te: float64 for floats, int64 for integers."""

import math

import numpy as np

ERFC = np.vectorize(math.erfc, otypes=[np.float64])
ACTIVATIONS = {
    "none": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "gelu": lambda x: 0.5 * x * ERFC(-x / math.sqrt(2)),
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


def entries(r, name, default, count):
    given = r.get(name, default)
    return tuple(given) if isinstance(given, list) else (given,) * count


def conv(rank):
    """A convolution of any rank, tap by tap."""

    def run(r, x, w, bias=None):
        last = r.get("layout", "NC")[1] != "C"
        if last:
            x, w = np.moveaxis(x, -1, 1), np.moveaxis(np.moveaxis(w, -1, 0), -1, 1)
        stride, dilation = (entries(r, n, 1, rank) for n in ("stride", "dilation"))
        x = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in entries(r, "pad", 0, rank))])
        groups, kernel = r.get("groups", 1), w.shape[2:]
        out = [
            (n - d * (k - 1) - 1) // s + 1
            for n, k, s, d in zip(x.shape[2:], kernel, stride, dilation, strict=True)
        ]
        y = np.zeros((x.shape[0], w.shape[0], *out), x.dtype)
        for g, (xg, wg) in enumerate(zip(np.split(x, groups, 1), np.split(w, groups, 0), strict=True)):
            channels = slice(g * wg.shape[0], (g + 1) * wg.shape[0])
            for tap in np.ndindex(*kernel):
                place = zip(tap, out, stride, dilation, strict=True)
                part = xg[
                    (slice(None), slice(None), *(slice(t * d, t * d + s * o, s) for t, o, s, d in place))
                ]
                part = part[(..., *(slice(0, o) for o in out))]
                y[:, channels] += np.moveaxis(np.tensordot(wg[(..., *tap)], part, ((1,), (1,))), 0, 1)
        if bias is not None:
            y = y + bias.reshape(1, -1, *[1] * rank)
        y = ACTIVATIONS[r.get("activation", "none")](y)
        return np.moveaxis(y, 1, -1) if last else y

    return run


def conv2d_transpose(r, x, w, bias=None):
    """Each element of x adds its multiple of the kernel to the output."""
    (sh, sw), (ph, pw), (eh, ew) = (
        entries(r, n, d, 2) for n, d in (("stride", 1), ("pad", 0), ("output_pad", 0))
    )
    (n, _, h, wd), (_, co, kh, kw) = x.shape, w.shape
    y = np.zeros((n, co, (h - 1) * sh + kh + eh, (wd - 1) * sw + kw + ew), x.dtype)
    for i in range(h):
        for j in range(wd):
            y[:, :, i * sh : i * sh + kh, j * sw : j * sw + kw] += np.tensordot(
                x[:, :, i, j], w, ((1,), (0,))
            )
    y = y[:, :, ph : y.shape[2] - ph, pw : y.shape[3] - pw]
    return _finish({**r, "layout": "NCHW"}, y, bias)


def pool(rank):
    """Window by window, over what lies inside of the input."""

    def run(r, x):
        last = r.get("layout", "NC")[1] != "C"
        if last:
            x = np.moveaxis(x, -1, 1)
        window = entries(r, "window", None, rank)
        stride = entries(r, "stride", list(window), rank)
        pad, dilation = entries(r, "pad", 0, rank), entries(r, "dilation", 1, rank)
        dims = list(zip(x.shape[2:], window, stride, pad, dilation, strict=True))
        out = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in dims]
        y = np.zeros((*x.shape[:2], *out), x.dtype)
        for place in np.ndindex(*out):
            ranges = []
            for o, (n, k, s, p, d) in zip(place, dims, strict=True):
                ranges.append([i for i in range(o * s - p, o * s - p + d * k, d) if 0 <= i < n])
            part = x[np.ix_(range(x.shape[0]), range(x.shape[1]), *ranges)].reshape(*x.shape[:2], -1)
            if r["function"] == "max":
                y[(..., *place)] = part.max(-1)
            else:
                total = part.sum(-1)
                y[(..., *place)] = (
                    total // part.shape[-1] if total.dtype.kind in "iu" else total / part.shape[-1]
                )
        return np.moveaxis(y, 1, -1) if last else y

    return run


def broadcast(r, a, b):
    # Integers divided by 0 are 0.
    with np.errstate(divide="ignore"):
        return getattr(np, r.get("function", "add"))(a, b)


def reduce(r, x):
    axes = tuple(r.get("axes") or range(x.ndim))
    f, keepdims = getattr(np, r["function"]), r.get("keepdims", False)
    if r["function"] not in ("argmin", "argmax"):
        return f(x, axis=axes, keepdims=keepdims)
    return f(x, axis=axes[0] if len(axes) < x.ndim else None, keepdims=keepdims)


def cumulative(r, x):
    ufunc = {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum}
    return ufunc[r.get("function", "sum")].accumulate(x, axis=r.get("axis", -1))


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
    "conv1d": conv(1),
    "conv2d": conv2d,
    "conv3d": conv(3),
    "conv2d_transpose": conv2d_transpose,
    "depthwise_conv2d": depthwise_conv2d,
    "pool1d": pool(1),
    "pool2d": pool(2),
    "pool3d": pool(3),
    "broadcast": broadcast,
    "reduce": reduce,
    "cumulative": cumulative,
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
