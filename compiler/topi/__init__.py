"""The operator library, written in te."""

from .activation import ACTIVATIONS, activate, epilogue
from .broadcast import BROADCASTS, broadcast
from .conv import conv1d, conv2d, conv3d, depthwise_conv2d, pad2d
from .elementwise import add, transpose, unary
from .matmul import dense, matmul
from .operators import OPERATORS, Operator, create, schemas
from .parameters import OperatorError, Parameter
from .pool import pool1d, pool2d, pool3d
from .quantize import dequantize, quantize, requantize
from .reduce import CUMULATIVE, REDUCTIONS, cumulative, reduce
from .rows import layer_norm, softmax
from .transposed import conv2d_transpose

__all__ = [
    "ACTIVATIONS",
    "BROADCASTS",
    "CUMULATIVE",
    "OPERATORS",
    "REDUCTIONS",
    "Operator",
    "OperatorError",
    "Parameter",
    "activate",
    "add",
    "broadcast",
    "conv1d",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "create",
    "cumulative",
    "dense",
    "depthwise_conv2d",
    "dequantize",
    "epilogue",
    "layer_norm",
    "matmul",
    "pad2d",
    "pool1d",
    "pool2d",
    "pool3d",
    "quantize",
    "reduce",
    "requantize",
    "schemas",
    "softmax",
    "transpose",
    "unary",
]
