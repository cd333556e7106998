"""What the benchmarks run: named operators in sets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tilewright.compiler import te, topi
from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.topi.operators import OPERATORS

#: Operators whose second parameter is a weight, which a deployed model holds as a constant.
WEIGHTED = ("dense", "conv1d", "conv2d", "conv3d", "conv2d_transpose", "depthwise_conv2d")


@dataclass(frozen=True, slots=True)
class Workload:
    """name; title: what it is, for people; operator: the request for it; count: how often the model runs it.
    beside: for an odd size, the workload of the next round size, which is timed in the same rounds."""

    name: str
    title: str
    operator: Mapping[str, Any]
    count: int = 1
    beside: Workload | None = None

    def program(self) -> PrimFunc:
        """The program, unscheduled."""
        if self.operator["op"] == "norm":
            return _norm(*self.operator["shape"])
        if "dtype_b" in self.operator:
            return _mixed(**self.operator)
        return topi.create(dict(self.operator))

    def arguments(self) -> dict[str, Any]:
        """The operator with its defaults."""
        name = self.operator["op"]
        if name == "norm":
            return dict(self.operator)
        given = dict(self.operator)
        more = {"dtype_b": given.pop("dtype_b")} if "dtype_b" in given else {}
        return {**OPERATORS[name].read(given, ""), "op": name, **more}


def _norm(b: int, m: int, n: int) -> PrimFunc:
    """The Euclidean norm of each matrix of a batch."""
    x = te.placeholder((b, m, n), "float32", name="X")
    i, j = te.reduce_axis((0, m), name="i"), te.reduce_axis((0, n), name="j")
    squares = te.compute((b,), lambda q: te.sum(x[q, i, j] * x[q, i, j], axis=[i, j]), name="squares")
    return te.create_prim_func([x, te.compute((b,), lambda q: te.sqrt(squares[q]), name="Y")], name="norm")


def _mixed(op: str, m: int, n: int, k: int, dtype: str, dtype_b: str, transpose_b: bool) -> PrimFunc:
    """A product of two dtypes of integers, summed in int32."""
    a = te.placeholder((m, k), dtype, name="A")
    b = te.placeholder((n, k) if transpose_b else (k, n), dtype_b, name="B")
    r = te.reduce_axis((0, k), name="k")

    def element(i: te.Index, j: te.Index) -> te.Value:
        y = b[j, r] if transpose_b else b[r, j]
        return te.sum(te.cast(a[i, r], "int32") * te.cast(y, "int32"), axis=r)

    return te.create_prim_func([a, b, te.compute((m, n), element, name="C")], name=op)


def matmul(m: int, n: int, k: int, dtype: str = "float32", **more: Any) -> dict[str, Any]:
    """C[m, n] = A[m, k] · B[k, n]."""
    return {"op": "matmul", "m": m, "n": n, "k": k, "dtype": dtype, **more}


def dense(m: int, n: int, k: int, **more: Any) -> dict[str, Any]:
    """The same with a bias and, where not told otherwise, relu."""
    return {"op": "dense", "m": m, "n": n, "k": k, "bias": True, "activation": "relu", **more}


def conv(
    layout: str, ci: int, size: int, co: int, kernel: int = 3, stride: int = 1, **more: Any
) -> dict[str, Any]:
    """A square convolution with bias and relu, padded to keep the size."""
    image = {"op": "conv2d", "ci": ci, "h": size, "w": size, "co": co, "kh": kernel, "kw": kernel}
    rest = {"pad": kernel // 2, "bias": True, "activation": "relu", "layout": layout}
    return {**image, **rest, **more}


def depthwise(layout: str, c: int, size: int, stride: int = 1) -> dict[str, Any]:
    """A 3x3 depthwise convolution."""
    image = {"op": "depthwise_conv2d", "c": c, "h": size, "w": size, "kh": 3, "kw": 3}
    return {**image, "stride": stride, "pad": 1, "layout": layout}


W: tuple[Workload, ...] = (
    Workload("W1", "matmul 1024x1024x1024", matmul(1024, 1024, 1024)),
    Workload("W2", "matmul 512x512x512", matmul(512, 512, 512)),
    Workload("W3", "matmul 16x1024x1024", matmul(16, 1024, 1024)),
    Workload("W4", "dense 128x768 -> 3072, bias, relu", dense(128, 3072, 768)),
    Workload("W5", "conv2d 64x56x56 -> 64, 3x3, bias, relu, NHWC", conv("NHWC", 64, 56, 64)),
    Workload("W5n", "the same, NCHW", conv("NCHW", 64, 56, 64)),
    Workload("W6", "conv2d 256x14x14 -> 256, 3x3, bias, relu, NCHW", conv("NCHW", 256, 14, 256)),
    Workload("W7", "depthwise 128x28x28, 3x3, NHWC", depthwise("NHWC", 128, 28)),
    Workload("W7n", "the same, NCHW", depthwise("NCHW", 128, 28)),
    Workload("W8", "softmax over rows, 512x1024", {"op": "softmax", "m": 512, "n": 1024}),
    Workload("W9", "layer norm over rows, 512x768", {"op": "layer_norm", "m": 512, "n": 768}),
    Workload(
        "W10", "batch matmul 12x128x64x128", {"op": "batch_matmul", "b": 12, "m": 128, "n": 128, "k": 64}
    ),
)


def _beside(name: str, title: str, odd: Mapping[str, Any], round_: Mapping[str, Any]) -> Workload:
    """An odd size with its next round size."""
    return Workload(name, title, odd, beside=Workload(f"{name}r", "round", round_))


ODD: tuple[Workload, ...] = (
    _beside("O127", "matmul 127 (128)", matmul(127, 127, 127), matmul(128, 128, 128)),
    _beside("O1000", "matmul 1000 (1024)", matmul(1000, 1000, 1000), matmul(1024, 1024, 1024)),
    _beside("O1023", "matmul 1023 (1024)", matmul(1023, 1023, 1023), matmul(1024, 1024, 1024)),
    _beside("Oprime", "matmul 251x509x127 (256x512x128)", matmul(251, 509, 127), matmul(256, 512, 128)),
    _beside("O7n", "conv2d 128x7x7 -> 128, NCHW (8x8)", conv("NCHW", 128, 7, 128), conv("NCHW", 128, 8, 128)),
    _beside("O7", "conv2d 128x7x7 -> 128, NHWC (8x8)", conv("NHWC", 128, 7, 128), conv("NHWC", 128, 8, 128)),
    _beside("O3n", "conv2d 3x56x56 -> 64, NCHW (4)", conv("NCHW", 3, 56, 64), conv("NCHW", 4, 56, 64)),
    _beside("O3", "conv2d 3x56x56 -> 64, NHWC (4)", conv("NHWC", 3, 56, 64), conv("NHWC", 4, 56, 64)),
    _beside("O13n", "conv2d 64x28x28 -> 13, NCHW (16)", conv("NCHW", 64, 28, 13), conv("NCHW", 64, 28, 16)),
    _beside("O13", "conv2d 13x28x28 -> 13, NHWC (16)", conv("NHWC", 13, 28, 13), conv("NHWC", 16, 28, 16)),
    _beside("O13d", "depthwise 13x28x28, NHWC (16)", depthwise("NHWC", 13, 28), depthwise("NHWC", 16, 28)),
    _beside(
        "O53", "conv2d 61x53x53 -> 67, NHWC (64x56x56 -> 80)",
        conv("NHWC", 61, 53, 67), conv("NHWC", 64, 56, 80),
    ),
    _beside(
        "O8", "softmax over rows, 509x1021 (512x1024)",
        {"op": "softmax", "m": 509, "n": 1021}, {"op": "softmax", "m": 512, "n": 1024},
    ),
    _beside(
        "O9", "layer norm over rows, 509x761 (512x768)",
        {"op": "layer_norm", "m": 509, "n": 761}, {"op": "layer_norm", "m": 512, "n": 768},
    ),
)  # fmt: skip

NARROW: tuple[Workload, ...] = (
    Workload("I8", "matmul 512x512x512, int8", matmul(512, 512, 512, "int8")),
    Workload("I8t", "the same, B stored [n, k]", matmul(512, 512, 512, "int8", transpose_b=True)),
    Workload("I8big", "matmul 1024x1024x1024, int8", matmul(1024, 1024, 1024, "int8")),
    Workload(
        "I8row", "matmul 1x1024x1024, int8, B stored [n, k]",
        matmul(1, 1024, 1024, "int8", transpose_b=True),
    ),
    Workload(
        "U8", "matmul 512x512x512, uint8 x int8",
        matmul(512, 512, 512, "uint8", dtype_b="int8", transpose_b=False),
    ),
    Workload(
        "U8t", "the same, B stored [n, k]",
        matmul(512, 512, 512, "uint8", dtype_b="int8", transpose_b=True),
    ),
    Workload("B16", "matmul 512x512x512, bfloat16", matmul(512, 512, 512, "bfloat16")),
    Workload("B16t", "the same, B stored [n, k]", matmul(512, 512, 512, "bfloat16", transpose_b=True)),
    Workload("B16big", "matmul 1024x1024x1024, bfloat16", matmul(1024, 1024, 1024, "bfloat16")),
    Workload("F16", "matmul 512x512x512, float16", matmul(512, 512, 512, "float16")),
    Workload("F16t", "the same, B stored [n, k]", matmul(512, 512, 512, "float16", transpose_b=True)),
)  # fmt: skip

#: The sets by name; `models` and `suite` come from models.json.
SETS = ("w", "odd", "models", "suite", "narrow")


def workloads(
    sets: Iterable[str], names: Iterable[str] = (), constant_weights: bool = True
) -> list[Workload]:
    """Those of the sets ("all": every set), or those with the given names of any set. Raises SystemExit that
    lists what is known."""
    from .models import models, suite

    known = {"w": W, "odd": ODD, "models": models(), "suite": suite(), "narrow": NARROW}
    wanted = SETS if "all" in sets else tuple(sets)
    if unknown := sorted(set(wanted) - set(SETS)):
        raise SystemExit(f"unknown sets {', '.join(unknown)}; known: all, {', '.join(SETS)}")
    chosen = [w for s in wanted for w in known[s]]
    if names := tuple(names):
        everything = {w.name: w for s in SETS for w in known[s]}
        if missing := sorted(set(names) - everything.keys()):
            raise SystemExit(f"unknown workloads {', '.join(missing)}; known: {', '.join(everything)}")
        chosen = [everything[n] for n in names]
    return [with_constants(w) for w in chosen] if constant_weights else chosen


def with_constants(w: Workload) -> Workload:
    """The workload with its weights declared constant, as peers treat them, where it has weights and the
    operator can say so."""
    op = OPERATORS.get(w.operator["op"])
    beside = with_constants(w.beside) if w.beside else None
    if op is None or op.name not in WEIGHTED or all(p.name != "constant_weights" for p in op.parameters):
        return replace(w, beside=beside)
    return replace(w, operator={**w.operator, "constant_weights": True}, beside=beside)
