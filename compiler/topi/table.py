"""The table of operators that a workload may name instead of spelling out its program."""

from __future__ import annotations

from collections.abc import Callable

from .. import te
from . import makers
from .activation import ACTIVATIONS
from .broadcast import BROADCASTS
from .makers import Arguments
from .operator import Operator
from .parameters import Kind, Parameter
from .pool import POOLS
from .reduce import CUMULATIVE, REDUCTIONS
from .window import LAYOUTS

FLOATS = ("float32", "float64", "float16", "bfloat16")
NUMBERS = (*FLOATS, "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def extent(name: str, doc: str) -> Parameter:
    """A required extent."""
    return Parameter(name, "int", doc, required=True)


def number(name: str, doc: str, default: int | None, low: int = 1) -> Parameter:
    """An integer."""
    return Parameter(name, "int", doc, default, low=low)


def choice(name: str, doc: str, default: str | None, choices: tuple[str, ...]) -> Parameter:
    """One of several words; required without a default."""
    return Parameter(name, "choice", doc, default, required=default is None, choices=choices)


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
_CONSTANT = flag("constant_weights", "weights and bias are known before the calls and may be packed then")
_SHAPE_KINDS: dict[int, Kind] = {1: "int", 2: "pair", 3: "triple"}


def _window(rank: int, stride: int | None = 1) -> tuple[Parameter, ...]:
    kind = _SHAPE_KINDS[rank]
    own = "" if stride else "; by default its extent"
    return (
        Parameter("stride", kind, f"step of the window{own}", stride),
        Parameter("pad", kind, "zeros on each side" if stride else "padding on each side", 0, low=0),
        Parameter("dilation", kind, "distance of the kernel's elements", 1),
    )


def _layout(rank: int) -> Parameter:
    return choice("layout", "order of the dimensions", LAYOUTS[rank][0], LAYOUTS[rank])


def _image(rank: int) -> tuple[Parameter, ...]:
    return tuple(extent(n, f"{what} of the input") for n, what in _DIMENSIONS[-rank:])


def _kernel(rank: int) -> tuple[Parameter, ...]:
    return tuple(extent(f"k{n}", f"{what} of the kernel") for n, what in _DIMENSIONS[-rank:])


def _convolution(rank: int, weights: str, make: Callable[[Arguments], list[te.Tensor]]) -> Operator:
    return Operator(
        f"conv{rank}d",
        f"Convolution; weights {weights}",
        (
            number("n", "images", 1),
            extent("ci", "input channels"),
            *_image(rank),
            extent("co", "output channels"),
            *_kernel(rank),
            *_window(rank),
            number("groups", "groups of channels", 1),
            _layout(rank),
            dtype(),
            *_EPILOGUE,
            _OUT_DTYPE,
            _CONSTANT,
        ),
        make,
    )


def _pooling(rank: int, make: Callable[[Arguments], list[te.Tensor]]) -> Operator:
    return Operator(
        f"pool{rank}d",
        "The largest element or the mean of each window; padding does not count",
        (
            number("n", "images", 1),
            extent("c", "channels"),
            *_image(rank),
            choice("function", "what becomes of a window", None, POOLS),
            Parameter("window", _SHAPE_KINDS[rank], "extent of the window", required=True),
            *_window(rank, None),
            _layout(rank),
            dtype(),
        ),
        make,
    )


_DIMENSIONS = (("d", "depth"), ("h", "height"), ("w", "width"))
_SHAPE = Parameter("shape", "shape", "extents of the input", required=True)


_MATRIX = (
    extent("m", "rows of the output"),
    extent("n", "columns of the output"),
    extent("k", "terms of each sum"),
)
_TRANSPOSED = (flag("transpose_a", "A is stored [k, m]"), flag("transpose_b", "B is stored [n, k]"))

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
                _CONSTANT,
            ),
            makers.make_dense,
        ),
        _convolution(1, "OIW for the layout NCW, WIO for NWC", makers.make_conv1d),
        _convolution(2, "OIHW for the layout NCHW, HWIO for NHWC", makers.make_conv2d),
        _convolution(3, "OIDHW for the layout NCDHW, DHWIO for NDHWC", makers.make_conv3d),
        Operator(
            "conv2d_transpose",
            "The gradient of a convolution with respect to its input; NCHW, weights IOHW",
            (
                number("n", "images", 1),
                extent("ci", "input channels"),
                *_image(2),
                extent("co", "output channels"),
                *_kernel(2),
                *_window(2)[:2],
                Parameter("output_pad", "pair", "rows and columns more at the end", 0, low=0),
                dtype(),
                *_EPILOGUE,
                _OUT_DTYPE,
                _CONSTANT,
            ),
            makers.make_conv2d_transpose,
        ),
        Operator(
            "depthwise_conv2d",
            "Convolution of each channel by itself; weights CHW for the layout NCHW, HWC for NHWC",
            (
                number("n", "images", 1),
                extent("c", "channels"),
                *_image(2),
                *_kernel(2),
                *_window(2),
                _layout(2),
                dtype(),
                *_EPILOGUE,
                _OUT_DTYPE,
                _CONSTANT,
            ),
            makers.make_depthwise_conv2d,
        ),
        _pooling(1, makers.make_pool1d),
        _pooling(2, makers.make_pool2d),
        _pooling(3, makers.make_pool3d),
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
            "broadcast",
            "A function of A and B, elementwise, with NumPy's broadcasting",
            (
                Parameter("a", "shape", "extents of A", required=True),
                Parameter("b", "shape", "extents of B", required=True),
                choice("function", "the function", "add", tuple(BROADCASTS)),
                dtype(),
            ),
            makers.make_broadcast,
        ),
        Operator(
            "reduce",
            "NumPy's function of that name over some dimensions; all and any take booleans",
            (
                _SHAPE,
                choice("function", "the function", None, tuple(REDUCTIONS)),
                Parameter("axes", "shape", "the dimensions; by default all", low=0, high=7),
                flag("keepdims", "keep the dimensions with the extent 1"),
                dtype((*NUMBERS, "bool")),
                _OUT_DTYPE,
            ),
            makers.make_reduce,
        ),
        Operator(
            "cumulative",
            "A function of all elements up to each one along a dimension",
            (
                _SHAPE,
                choice("function", "the function", "sum", tuple(CUMULATIVE)),
                Parameter("axis", "int", "the dimension; -1 is the last", -1, low=-1, high=7),
                dtype(),
            ),
            makers.make_cumulative,
        ),
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
