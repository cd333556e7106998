"""The programs that random schedules are tried on: small, of every kind, many with prime or unit extents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import composed
import constants
import programs

from tilewright.compiler import te
from tilewright.compiler.ir import PrimFunc


@dataclass(frozen=True, slots=True)
class Workload:
    """make: the unscheduled program. exact: small integers as inputs give results that every order of
    evaluation gives bit for bit. sizes: for symbolic shapes, the sizes to call with, one mapping a call."""

    make: Callable[[], PrimFunc]
    exact: bool = True
    sizes: tuple[Mapping[str, int], ...] = ()


_N = tuple({"n": n} for n in (0, 1, 2, 7, 8, 13, 32, 33))
_MNK = tuple(
    {"m": m, "n": n, "k": k}
    for m, n, k in ((0, 3, 2), (1, 1, 1), (4, 16, 3), (5, 17, 7), (8, 8, 8), (3, 2, 0), (13, 9, 1))
)

_NM = tuple({"n": n, "m": m} for n, m in ((0, 3), (3, 0), (1, 1), (5, 7), (8, 16), (13, 9)))

WORKLOADS: Mapping[str, Workload] = {
    "add": Workload(programs.operator(op="add", shape=[3, 13])),
    "add of uint64": Workload(programs.operator(op="add", shape=[5, 7], dtype="uint64")),
    "add of bytes": Workload(programs.operator(op="add", shape=[4, 33], dtype="uint8")),
    "scale float16": Workload(lambda: programs.unary(lambda x: x * 2 + 1, "float16")),
    "scale bfloat16": Workload(lambda: programs.unary(lambda x: x * 2 - 1, "bfloat16")),
    "absolute int64": Workload(lambda: programs.unary(lambda x: te.maximum(te.abs(x), 3), "int64")),
    "clamp int8": Workload(lambda: programs.unary(lambda x: te.minimum(te.maximum(x, -2), 5), "int8")),
    "square root": Workload(lambda: programs.unary(lambda x: te.sqrt(te.abs(x)), "float32"), exact=False),
    "sigmoid": Workload(lambda: programs.unary(te.sigmoid, "float32"), exact=False),
    "gelu": Workload(lambda: programs.unary(te.gelu, "float32"), exact=False),
    "sine": Workload(lambda: programs.unary(te.sin, "float32"), exact=False),
    "round float64": Workload(lambda: programs.unary(lambda x: te.round(x * 0.5), "float64")),
    "broadcast": Workload(programs.broadcast),
    "transpose": Workload(programs.operator(op="transpose", shape=[5, 9], axes=[1, 0])),
    "transpose of three": Workload(
        programs.operator(op="transpose", shape=[3, 5, 4], axes=[2, 0, 1], dtype="int16")
    ),
    "stencil": Workload(programs.stencil),
    "stencil in two dimensions": Workload(programs.stencil2d),
    "padded stencil": Workload(programs.padded),
    "guarded reads": Workload(programs.shifted),
    "flattened": Workload(lambda: programs.flat("uint16")),
    "row sums": Workload(lambda: programs.reduce("sum", "float32")),
    "row sums of halves": Workload(lambda: programs.reduce("sum", "float16", (3, 19))),
    "row sums of int8": Workload(lambda: programs.reduce("sum", "int8")),
    "row products": Workload(lambda: programs.reduce("prod", "int32", (7, 5))),
    "row minima": Workload(lambda: programs.reduce("min", "float64")),
    "row maxima": Workload(lambda: programs.reduce("max", "uint32")),
    "argmax": Workload(programs.argmax),
    "argmin of floats": Workload(lambda: programs.reduce("argmin", "float32", (3, 14))),
    "row ands": Workload(lambda: programs.reduce("reduce_and", "uint64", (4, 9))),
    "row ors of booleans": Workload(lambda: programs.reduce("reduce_or", "bool", (4, 11))),
    "row xors": Workload(lambda: programs.reduce("reduce_xor", "int16", (5, 8))),
    "a user's reducer": Workload(programs.user_reducer),
    "column maxima": Workload(programs.columns),
    "whole sum": Workload(programs.whole),
    "whole sum of bfloat16": Workload(lambda: programs.whole("bfloat16"), exact=False),
    "two outputs": Workload(programs.two_outputs),
    "matmul": Workload(lambda: programs.matmul("float32", "nn")),
    "matmul, A transposed": Workload(lambda: programs.matmul("float32", "tn", 7, 13, 5)),
    "matmul, B transposed": Workload(lambda: programs.matmul("float32", "nt", 4, 16, 8)),
    "matmul float16": Workload(lambda: programs.matmul("float16", "nn", 3, 9, 5)),
    "matmul bfloat16": Workload(lambda: programs.matmul("bfloat16", "nt", 3, 16, 4)),
    "matmul of ones": Workload(programs.operator(op="matmul", m=1, n=1, k=1)),
    "matmul int8": Workload(programs.operator(op="matmul", m=3, n=16, k=12, dtype="int8")),
    "rows of bytes": Workload(lambda: programs.rows_of_bytes("uint8", "int8")),
    "rows of int8": Workload(lambda: programs.rows_of_bytes("int8", "int8")),
    "rows of int16": Workload(lambda: programs.rows_of_bytes("int16", "int16")),
    "rows of bfloat16": Workload(lambda: programs.rows_of_bytes("bfloat16", "bfloat16", "float32")),
    "even matmul": Workload(programs.operator(op="matmul", m=8, n=16, k=8)),
    "batch matmul": Workload(programs.operator(op="batch_matmul", b=3, m=4, n=5, k=6)),
    "dense": Workload(
        programs.operator(op="dense", m=3, n=17, k=6, dtype="float64", bias=True, activation="relu")
    ),
    "dot rows": Workload(programs.dot_rows),
    "matrix by vector": Workload(programs.operator(op="matmul", m=13, n=1, k=11)),
    "conv1d": Workload(lambda: programs.conv1d(1, 1)),
    "conv1d with stride and dilation": Workload(lambda: programs.conv1d(2, 3)),
    "conv2d": Workload(
        programs.operator(op="conv2d", ci=2, h=5, w=6, co=3, kh=3, kw=3, pad=1, activation="relu")
    ),
    "conv2d with stride": Workload(
        programs.operator(op="conv2d", ci=3, h=7, w=7, co=4, kh=3, kw=3, stride=2, layout="NHWC")
    ),
    "conv2d in groups": Workload(programs.grouped_conv2d),
    "conv3d": Workload(programs.conv3d),
    "depthwise": Workload(programs.operator(op="depthwise_conv2d", c=5, h=4, w=4, kh=3, kw=3, layout="NHWC")),
    "transposed conv2d": Workload(
        programs.operator(op="conv2d_transpose", ci=2, h=4, w=3, co=3, kh=3, kw=3, stride=2, pad=1)
    ),
    "max pool": Workload(programs.max_pool),
    "softmax": Workload(programs.operator(op="softmax", m=3, n=11), exact=False),
    "layer norm": Workload(programs.operator(op="layer_norm", m=4, n=12), exact=False),
    "chain of four": Workload(programs.chain),
    "cumulative": Workload(programs.cumulative),
    "prefix sums": Workload(programs.prefix),
    "diamond": Workload(programs.diamond),
    "product read transposed": Workload(programs.twice),
    "chained products": Workload(programs.chained_products),
    "epilogue": Workload(programs.epilogue),
    "narrow integers": Workload(programs.narrow_integers),
    "shifts": Workload(programs.shifts),
    "divisions int32": Workload(lambda: programs.divisions("int32")),
    "divisions uint16": Workload(lambda: programs.divisions("uint16")),
    "booleans": Workload(programs.bools),
    "casts": Workload(programs.casts),
    "indices as values": Workload(programs.indices_as_values),
    "symbolic chain": Workload(programs.symbolic_add, sizes=_N),
    "symbolic matmul": Workload(programs.symbolic_matmul, sizes=_MNK),
    "symbolic rows": Workload(programs.symbolic_rows, sizes=_N),
    "attention": Workload(composed.attention, exact=False),
    "pooled convolution": Workload(composed.pooled_convolution),
    "outputs read again": Workload(composed.outputs_read_again),
    "wrapped reads": Workload(composed.wrapped),
    "up and down": Workload(composed.up_and_down),
    "transposed convolution": Workload(
        programs.operator(op="conv2d_transpose", ci=2, h=3, w=4, co=2, kh=3, kw=2, stride=2)
    ),
    "average pool": Workload(
        programs.operator(op="pool2d", c=2, h=5, w=6, function="avg", window=3, pad=1, dtype="int8")
    ),
    "symbolic rows and columns": Workload(composed.symbolic_rows_and_columns, sizes=_NM),
    "symbolic convolution": Workload(composed.symbolic_convolution, sizes=_N),
    "product with constants": Workload(constants.product),
    "product with int8 constants": Workload(lambda: constants.product("int8", 3, 16, 8)),
    "product with float16 constants": Workload(lambda: constants.product("float16", 3, 9, 5)),
    "prepared weights": Workload(constants.prepared),
    "shared constant": Workload(constants.shared),
    "constant taps": Workload(constants.filtered),
    "rows times constants": Workload(constants.rows, sizes=constants.SIZES),
    "convolution with constants": Workload(
        programs.operator(
            op="conv2d", ci=3, h=5, w=6, co=5, kh=3, kw=2, pad=1, bias=True, constant_weights=True
        )
    ),
}
