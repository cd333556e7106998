"""The operators that a workload may name instead of spelling out its program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .. import te
from ..ir.dtype import DType, TypeMismatch
from ..ir.func import PrimFunc
from .activation import ACTIVATIONS, INTEGER_ACTIVATIONS
from .conv import LAYOUTS, conv2d, depthwise_conv2d
from .elementwise import add, transpose, unary
from .matmul import accumulation, dense, matmul
from .parameters import Json, OperatorError, Parameter
from .rows import layer_norm, softmax

FLOATS = ("float32", "float64", "float16", "bfloat16")
NUMBERS = (*FLOATS, "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
Arguments = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator: `make` gives its parameter tensors, the output last."""

    name: str
    doc: str
    parameters: tuple[Parameter, ...]
    make: Callable[[Arguments], list[te.Tensor]]

    def schema(self) -> dict[str, Json]:
        """The JSON schema of a request, `op` included."""
        properties = {"op": {"const": self.name}, **{p.name: p.schema() for p in self.parameters}}
        required = ["op", *(p.name for p in self.parameters if p.required)]
        return {
            "type": "object", "description": self.doc, "properties": properties, "required": required, "additionalProperties": False,
        }  # fmt: skip

    def read(self, request: Json, at: str) -> Arguments:
        """The arguments of a request, defaults filled in. Raises OperatorError."""
        known = {p.name for p in self.parameters}
        for key in request:
            if key != "op" and key not in known:
                names = ", ".join(p.name for p in self.parameters)
                raise OperatorError(f"{self.name!r} has no parameter {key!r}; it has: {names}", f"{at}/{_escaped(key)}")
        for p in self.parameters:
            if p.required and p.name not in request:
                raise OperatorError(f"{self.name!r} needs the parameter {p.name!r}: {p.doc}", at)
        return {
            p.name: p.read(request.get(p.name, p.default), f"{at}/{p.name}") if p.name in request or p.default is not None else None
            for p in self.parameters
        }


def _escaped(key: object) -> str:
    return str(key).replace("~", "~0").replace("/", "~1")


def extent(name: str, doc: str) -> Parameter:
    """A required extent."""
    return Parameter(name, "int", doc, required=True)


def dtype(choices: tuple[str, ...] = NUMBERS) -> Parameter:
    """The dtype of the inputs."""
    return Parameter("dtype", "choice", "dtype of the inputs", "float32", choices=choices)


def flag(name: str, doc: str, default: bool = False) -> Parameter:
    """A boolean."""
    return Parameter(name, "bool", doc, default)


_OUT_DTYPE = Parameter(
    "out_dtype", "choice", "dtype of the output; by default that of the inputs, int32 for integers below 32 bits", choices=NUMBERS
)  # fmt: skip
_EPILOGUE = (
    flag("bias", "add a vector along the output channels"),
    Parameter("activation", "choice", "what follows the sum", "none", choices=ACTIVATIONS),
)
_WINDOW = (
    Parameter("stride", "pair", "step of the window", 1),
    Parameter("pad", "pair", "zeros on each side", 0, low=0),
    Parameter("dilation", "pair", "distance of the kernel's elements", 1),
)
_LAYOUT = Parameter("layout", "choice", "order of the dimensions", "NCHW", choices=LAYOUTS)
_SHAPE = Parameter("shape", "shape", "extents of the input", required=True)


def _matmul(p: Arguments) -> list[te.Tensor]:
    return _product(p, ())


def _batch_matmul(p: Arguments) -> list[te.Tensor]:
    return _product(p, (p["b"],))


def _product(p: Arguments, batch: tuple[int, ...]) -> list[te.Tensor]:
    m, n, k, ta, tb = p["m"], p["n"], p["k"], p["transpose_a"], p["transpose_b"]
    a = te.placeholder((*batch, k, m) if ta else (*batch, m, k), p["dtype"], name="A")
    b = te.placeholder((*batch, n, k) if tb else (*batch, k, n), p["dtype"], name="B")
    return [a, b, matmul(a, b, transpose_a=ta, transpose_b=tb, out_dtype=p["out_dtype"])]


def _dense(p: Arguments) -> list[te.Tensor]:
    m, n, k = p["m"], p["n"], p["k"]
    x = te.placeholder((m, k), p["dtype"], name="X")
    w = te.placeholder((k, n) if p["weights"] == "kn" else (n, k), p["dtype"], name="W")
    bias = _bias(p, n)
    y = dense(x, w, bias, weights=p["weights"], activation=p["activation"], out_dtype=p["out_dtype"])
    return [x, w, *_given(bias), y]


def _conv2d(p: Arguments) -> list[te.Tensor]:
    n, ci, h, w, co, kh, kw, groups = (p[x] for x in ("n", "ci", "h", "w", "co", "kh", "kw", "groups"))
    for name in ("ci", "co"):
        if p[name] % groups:
            raise OperatorError(f"{name!r} must be a multiple of 'groups' ({groups}), got {p[name]}", f"/{name}")
    nchw = p["layout"] == "NCHW"
    x = te.placeholder((n, ci, h, w) if nchw else (n, h, w, ci), p["dtype"], name="X")
    weight = te.placeholder((co, ci // groups, kh, kw) if nchw else (kh, kw, ci // groups, co), p["dtype"], name="W")
    bias = _bias(p, co)
    y = conv2d(
        x, weight, bias, stride=p["stride"], pad=p["pad"], dilation=p["dilation"], groups=groups, layout=p["layout"],
        activation=p["activation"], out_dtype=p["out_dtype"],
    )  # fmt: skip
    return [x, weight, *_given(bias), y]


def _depthwise_conv2d(p: Arguments) -> list[te.Tensor]:
    n, c, h, w, kh, kw = (p[x] for x in ("n", "c", "h", "w", "kh", "kw"))
    nchw = p["layout"] == "NCHW"
    x = te.placeholder((n, c, h, w) if nchw else (n, h, w, c), p["dtype"], name="X")
    weight = te.placeholder((c, kh, kw) if nchw else (kh, kw, c), p["dtype"], name="W")
    bias = _bias(p, c)
    y = depthwise_conv2d(
        x, weight, bias, stride=p["stride"], pad=p["pad"], dilation=p["dilation"], layout=p["layout"],
        activation=p["activation"], out_dtype=p["out_dtype"],
    )  # fmt: skip
    return [x, weight, *_given(bias), y]


def _bias(p: Arguments, channels: int) -> te.Tensor | None:
    """A bias of integers is in what they accumulate in."""
    if not p["bias"]:
        return None
    inputs = DType.parse(p["dtype"])
    return te.placeholder((channels,), accumulation(inputs, None)[0] if inputs.is_int else inputs, name="B")


def _given(bias: te.Tensor | None) -> list[te.Tensor]:
    return [] if bias is None else [bias]


def _softmax(p: Arguments) -> list[te.Tensor]:
    x = te.placeholder((p["m"], p["n"]), p["dtype"], name="X")
    return [x, softmax(x)]


def _layer_norm(p: Arguments) -> list[te.Tensor]:
    x = te.placeholder((p["m"], p["n"]), p["dtype"], name="X")
    if not p["affine"]:
        return [x, layer_norm(x, epsilon=p["epsilon"])]
    gamma, beta = (te.placeholder((p["n"],), p["dtype"], name=name) for name in ("gamma", "beta"))
    return [x, gamma, beta, layer_norm(x, gamma, beta, epsilon=p["epsilon"])]


def _add(p: Arguments) -> list[te.Tensor]:
    a, b = (te.placeholder(p["shape"], p["dtype"], name=name) for name in ("A", "B"))
    return [a, b, add(a, b)]


def _elementwise(p: Arguments) -> list[te.Tensor]:
    x = te.placeholder(p["shape"], p["dtype"], name="X")
    return [x, unary(x, p["activation"])]


def _transpose(p: Arguments) -> list[te.Tensor]:
    rank = len(p["shape"])
    axes = p["axes"] if p["axes"] is not None else tuple(reversed(range(rank)))
    if sorted(axes) != list(range(rank)):
        raise OperatorError(f"'axes' must hold 0 to {rank - 1}, each once, got {list(axes)}", "/axes")
    x = te.placeholder(p["shape"], p["dtype"], name="X")
    return [x, transpose(x, axes)]


_MATRIX = (extent("m", "rows of the output"), extent("n", "columns of the output"), extent("k", "terms of each sum"))
_TRANSPOSED = (flag("transpose_a", "A is stored [k, m]"), flag("transpose_b", "B is stored [n, k]"))
_IMAGE = (extent("h", "height of the input"), extent("w", "width of the input"))
_KERNEL = (extent("kh", "height of the kernel"), extent("kw", "width of the kernel"))

OPERATORS: dict[str, Operator] = {
    o.name: o
    for o in (
        Operator("matmul", "C[m, n] = A[m, k] · B[k, n]", (*_MATRIX, dtype(), *_TRANSPOSED, _OUT_DTYPE), _matmul),
        Operator(
            "batch_matmul",
            "C[b, m, n] = A[b, m, k] · B[b, k, n]",
            (extent("b", "matrices in the batch"), *_MATRIX, dtype(), *_TRANSPOSED, _OUT_DTYPE),
            _batch_matmul,
        ),
        Operator(
            "dense",
            "Y[m, n] = activation(X[m, k] · W[k, n] + B[n])",
            (
                *_MATRIX, dtype(), Parameter("weights", "choice", "order in which W is stored", "kn", choices=("kn", "nk")), *_EPILOGUE,
                _OUT_DTYPE,
            ),  # fmt: skip
            _dense,
        ),
        Operator(
            "conv2d",
            "Convolution; weights OIHW for the layout NCHW, HWIO for NHWC",
            (
                Parameter("n", "int", "images", 1), extent("ci", "input channels"), *_IMAGE, extent("co", "output channels"), *_KERNEL,
                *_WINDOW, Parameter("groups", "int", "groups of channels", 1), _LAYOUT, dtype(), *_EPILOGUE, _OUT_DTYPE,
            ),  # fmt: skip
            _conv2d,
        ),
        Operator(
            "depthwise_conv2d",
            "Convolution of each channel by itself; weights CHW for the layout NCHW, HWC for NHWC",
            (
                Parameter("n", "int", "images", 1), extent("c", "channels"), *_IMAGE, *_KERNEL, *_WINDOW, _LAYOUT, dtype(), *_EPILOGUE,
                _OUT_DTYPE,
            ),  # fmt: skip
            _depthwise_conv2d,
        ),
        Operator("softmax", "Softmax of each row", (extent("m", "rows"), extent("n", "columns"), dtype(FLOATS)), _softmax),
        Operator(
            "layer_norm",
            "Layer normalisation of each row",
            (
                extent("m", "rows"), extent("n", "columns"), dtype(FLOATS), flag("affine", "scale by gamma and add beta", True),
                Parameter("epsilon", "float", "added to the variance", 1e-5, low=1e-12, high=1.0),
            ),  # fmt: skip
            _layer_norm,
        ),
        Operator("add", "A + B, elementwise", (_SHAPE, dtype()), _add),
        Operator(
            "elementwise",
            "An activation of each element",
            (_SHAPE, Parameter("activation", "choice", "the function", "relu", choices=ACTIVATIONS[1:]), dtype()),
            _elementwise,
        ),
        Operator(
            "transpose",
            "The dimensions in another order, as NumPy's transpose",
            (_SHAPE, Parameter("axes", "shape", "the order; by default reversed", low=0, high=7), dtype()),
            _transpose,
        ),
    )
}


def create(request: Json, *, at: str = "") -> PrimFunc:
    """The program of {"op": name, …}. Raises OperatorError, with a JSON pointer that starts with `at`."""
    if not isinstance(request, dict):
        raise OperatorError(f"expected an object with 'op', got {type(request).__name__}", at)
    name = request.get("op")
    if not isinstance(name, str) or name not in OPERATORS:
        what = "the field 'op' is missing" if name is None else f"unknown operator {name!r}"
        raise OperatorError(f"{what}; known: {', '.join(OPERATORS)}", f"{at}/op" if name is not None else at)
    operator = OPERATORS[name]
    arguments = operator.read(request, at)
    _check_dtypes(arguments, at)
    try:
        return te.create_prim_func(operator.make(arguments), name=name)
    except OperatorError as e:
        raise OperatorError(e.message, at + e.pointer) from None
    except (te.TensorError, TypeMismatch) as e:
        raise OperatorError(str(e).partition("\n")[0], at) from None


def _check_dtypes(p: Arguments, at: str) -> None:
    activation = p.get("activation", "none")
    if not DType.parse(p["dtype"]).is_float and activation not in INTEGER_ACTIVATIONS:
        raise OperatorError(f"{activation!r} needs floats; the dtype is {p['dtype']}", f"{at}/activation")
    out = p.get("out_dtype")
    if out is not None and DType.parse(out).is_float != DType.parse(p["dtype"]).is_float:
        raise OperatorError(f"'out_dtype' must be a float exactly where 'dtype' is: got {out} for {p['dtype']}", f"{at}/out_dtype")


def schemas() -> dict[str, dict[str, Json]]:
    """The JSON schema of each operator's request, by name."""
    return {name: o.schema() for name, o in OPERATORS.items()}
