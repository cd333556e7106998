"""The workloads' operators in TVM's tensor expressions."""

from __future__ import annotations

from typing import Any

Arguments = dict[str, Any]


def program(p: Arguments) -> Any:
    """The PrimFunc `main` of an operator with its defaults; None for one that is not written here."""
    make = _MAKERS.get(p["op"])
    if make is None or p.get("layout", "NCHW") not in ("NCHW", "NHWC"):
        return None
    if p.get("dtype", "float32") in ("float16", "bfloat16") or p.get("groups", 1) != 1:
        return None
    from tvm import te

    tensors = make(p)
    return te.create_prim_func(tensors).with_attr({"global_symbol": "main", "tir.noalias": True})


def _product(p: Arguments) -> list[Any]:
    from tvm import te

    b = (p["b"],) if p["op"] == "batch_matmul" else ()
    m, n, k = p["m"], p["n"], p["k"]
    x = te.placeholder((*b, k, m) if p["transpose_a"] else (*b, m, k), p["dtype"], name="A")
    dtype_b = p.get("dtype_b", p["dtype"])
    y = te.placeholder((*b, n, k) if p["transpose_b"] else (*b, k, n), dtype_b, name="B")
    wide = "int32" if "int" in p["dtype"] else p["dtype"]
    r = te.reduce_axis((0, k), name="k")

    def element(*index: Any) -> Any:
        *batch, i, j = index
        a = x[(*batch, r, i) if p["transpose_a"] else (*batch, i, r)]
        c = y[(*batch, j, r) if p["transpose_b"] else (*batch, r, j)]
        return te.sum(a.astype(wide) * c.astype(wide), axis=r)

    return [x, y, te.compute((*b, m, n), element, name="C")]


def _finished(p: Arguments, y: Any, channel: int, inputs: list[Any]) -> list[Any]:
    """Bias and activation behind a contraction."""
    from tvm import te, tirx, topi

    if p["bias"]:
        b = te.placeholder((y.shape[channel],), p["dtype"], name="bias")
        inputs.append(b)
        conv = y
        y = te.compute(conv.shape, lambda *i: conv(*i) + b[i[channel]], name="biased")
    match p["activation"]:
        case "relu":
            before = y
            y = te.compute(
                before.shape, lambda *i: tirx.max(before(*i), tirx.const(0, p["dtype"])), name="relu"
            )
        case "relu6":
            y = topi.clip(y, 0.0, 6.0)
        case "none":
            pass
        case other:
            raise ValueError(f"no TVM program for the activation {other!r}")
    return [*inputs, y]


def _dense(p: Arguments) -> list[Any]:
    from tvm import te

    m, n, k = p["m"], p["n"], p["k"]
    first = p["weights"] == "kn"
    x = te.placeholder((m, k), p["dtype"], name="X")
    w = te.placeholder((k, n) if first else (n, k), p["dtype"], name="W")
    r = te.reduce_axis((0, k), name="k")
    y = te.compute(
        (m, n), lambda i, j: te.sum(x[i, r] * (w[r, j] if first else w[j, r]), axis=r), name="dense"
    )
    return _finished(p, y, 1, [x, w])


def _conv(p: Arguments) -> list[Any]:
    from tvm import te, topi

    first, depthwise = p["layout"] == "NCHW", p["op"] == "depthwise_conv2d"
    (sh, sw), (ph, pw), (dh, dw) = p["stride"], p["pad"], p["dilation"]
    n, h, w, kh, kw = p["n"], p["h"], p["w"], p["kh"], p["kw"]
    ci = p["c"] if depthwise else p["ci"]
    co = p["c"] if depthwise else p["co"]
    oh, ow = (h + 2 * ph - dh * (kh - 1) - 1) // sh + 1, (w + 2 * pw - dw * (kw - 1) - 1) // sw + 1
    x = te.placeholder((n, ci, h, w) if first else (n, h, w, ci), p["dtype"], name="X")
    inner = () if depthwise else (ci,)
    wide = (co, *inner, kh, kw) if first else (kh, kw, *inner, co)
    weight = te.placeholder(wide, p["dtype"], name="W")
    pads = [0, 0, ph, pw] if first else [0, ph, pw, 0]
    image = topi.nn.pad(x, pads, pads, name="pad") if ph or pw else x
    ry, rx = te.reduce_axis((0, kh), name="y"), te.reduce_axis((0, kw), name="x")
    rc = te.reduce_axis((0, ci), name="c")
    axes = [ry, rx] if depthwise else [rc, ry, rx]

    def element(*index: Any) -> Any:
        b, c, i, j = index if first else (index[0], index[3], index[1], index[2])
        row, column, channel = i * sh + ry * dh, j * sw + rx * dw, c if depthwise else rc
        between = () if depthwise else (rc,)
        a = image[b, channel, row, column] if first else image[b, row, column, channel]
        return te.sum(a * weight[(c, *between, ry, rx) if first else (ry, rx, *between, c)], axis=axes)

    shape = (n, co, oh, ow) if first else (n, oh, ow, co)
    return _finished(p, te.compute(shape, element, name="conv"), 1 if first else 3, [x, weight])


def _softmax(p: Arguments) -> list[Any]:
    from tvm import te, topi

    x = te.placeholder((p["m"], p["n"]), p["dtype"], name="X")
    return [x, topi.nn.softmax(x, axis=1)]


def _layer_norm(p: Arguments) -> list[Any]:
    from tvm import te, topi

    x = te.placeholder((p["m"], p["n"]), p["dtype"], name="X")
    gamma, beta = (te.placeholder((p["n"],), p["dtype"], name=name) for name in ("gamma", "beta"))
    return [x, gamma, beta, topi.nn.layer_norm(x, gamma, beta, [1], p["epsilon"])]


_MAKERS = {
    "matmul": _product,
    "batch_matmul": _product,
    "dense": _dense,
    "conv2d": _conv,
    "depthwise_conv2d": _conv,
    "softmax": _softmax,
    "layer_norm": _layer_norm,
}
