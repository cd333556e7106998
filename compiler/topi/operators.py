"""The operators that a workload may name instead of spelling out its program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .. import te
from ..ir.dtype import DType, TypeMismatch
from ..ir.func import PrimFunc
from . import makers
from .activation import ACTIVATIONS, INTEGER_ACTIVATIONS
from .conv import LAYOUTS
from .makers import Arguments
from .parameters import Json, OperatorError, Parameter, escaped

FLOATS = ("float32", "float64", "float16", "bfloat16")
NUMBERS = (*FLOATS, "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


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
            "type": "object",
            "description": self.doc,
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        }

    def read(self, request: Json, at: str) -> Arguments:
        """The arguments of a request, defaults filled in. Raises OperatorError."""
        known = {p.name for p in self.parameters}
        for key in request:
            if key != "op" and key not in known:
                names = ", ".join(p.name for p in self.parameters)
                raise OperatorError(
                    f"{self.name!r} has no parameter {key!r}; it has: {names}", f"{at}/{escaped(key)}"
                )
        for p in self.parameters:
            if p.required and p.name not in request:
                raise OperatorError(f"{self.name!r} needs the parameter {p.name!r}: {p.doc}", at)
        return {
            p.name: p.read(request.get(p.name, p.default), f"{at}/{p.name}")
            if p.name in request or p.default is not None
            else None
            for p in self.parameters
        }


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
    "out_dtype",
    "choice",
    "dtype of the output; by default that of the inputs, int32 for integers below 32 bits",
    choices=NUMBERS,
)
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


_MATRIX = (
    extent("m", "rows of the output"),
    extent("n", "columns of the output"),
    extent("k", "terms of each sum"),
)
_TRANSPOSED = (flag("transpose_a", "A is stored [k, m]"), flag("transpose_b", "B is stored [n, k]"))
_IMAGE = (extent("h", "height of the input"), extent("w", "width of the input"))
_KERNEL = (extent("kh", "height of the kernel"), extent("kw", "width of the kernel"))

OPERATORS: dict[str, Operator] = {
    o.name: o
    for o in (
        Operator(
            "matmul",
            "C[m, n] = A[m, k] · B[k, n]",
            (*_MATRIX, dtype(), *_TRANSPOSED, _OUT_DTYPE),
            makers.make_matmul,
        ),
        Operator(
            "batch_matmul",
            "C[b, m, n] = A[b, m, k] · B[b, k, n]",
            (extent("b", "matrices in the batch"), *_MATRIX, dtype(), *_TRANSPOSED, _OUT_DTYPE),
            makers.make_batch_matmul,
        ),
        Operator(
            "dense",
            "Y[m, n] = activation(X[m, k] · W[k, n] + B[n])",
            (
                *_MATRIX,
                dtype(),
                Parameter("weights", "choice", "order in which W is stored", "kn", choices=("kn", "nk")),
                *_EPILOGUE,
                _OUT_DTYPE,
            ),
            makers.make_dense,
        ),
        Operator(
            "conv2d",
            "Convolution; weights OIHW for the layout NCHW, HWIO for NHWC",
            (
                Parameter("n", "int", "images", 1),
                extent("ci", "input channels"),
                *_IMAGE,
                extent("co", "output channels"),
                *_KERNEL,
                *_WINDOW,
                Parameter("groups", "int", "groups of channels", 1),
                _LAYOUT,
                dtype(),
                *_EPILOGUE,
                _OUT_DTYPE,
            ),
            makers.make_conv2d,
        ),
        Operator(
            "depthwise_conv2d",
            "Convolution of each channel by itself; weights CHW for the layout NCHW, HWC for NHWC",
            (
                Parameter("n", "int", "images", 1),
                extent("c", "channels"),
                *_IMAGE,
                *_KERNEL,
                *_WINDOW,
                _LAYOUT,
                dtype(),
                *_EPILOGUE,
                _OUT_DTYPE,
            ),
            makers.make_depthwise_conv2d,
        ),
        Operator(
            "softmax",
            "Softmax of each row",
            (extent("m", "rows"), extent("n", "columns"), dtype(FLOATS)),
            makers.make_softmax,
        ),
        Operator(
            "layer_norm",
            "Layer normalisation of each row",
            (
                extent("m", "rows"),
                extent("n", "columns"),
                dtype(FLOATS),
                flag("affine", "scale by gamma and add beta", True),
                Parameter("epsilon", "float", "added to the variance", 1e-5, low=1e-12, high=1.0),
            ),
            makers.make_layer_norm,
        ),
        Operator("add", "A + B, elementwise", (_SHAPE, dtype()), makers.make_add),
        Operator(
            "elementwise",
            "An activation of each element",
            (
                _SHAPE,
                Parameter("activation", "choice", "the function", "relu", choices=ACTIVATIONS[1:]),
                dtype(),
            ),
            makers.make_elementwise,
        ),
        Operator(
            "transpose",
            "The dimensions in another order, as NumPy's transpose",
            (_SHAPE, Parameter("axes", "shape", "the order; by default reversed", low=0, high=7), dtype()),
            makers.make_transpose,
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
        raise OperatorError(
            f"'out_dtype' must be a float exactly where 'dtype' is: got {out} for {p['dtype']}",
            f"{at}/out_dtype",
        )


def schemas() -> dict[str, dict[str, Json]]:
    """The JSON schema of each operator's request, by name."""
    return {name: o.schema() for name, o in OPERATORS.items()}
