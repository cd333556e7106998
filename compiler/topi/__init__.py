"""The operator library, written in te."""

from .activation import ACTIVATIONS, activate, epilogue
from .conv import conv2d, depthwise_conv2d, pad2d
from .elementwise import add, transpose, unary
from .matmul import dense, matmul
from .operators import OPERATORS, Operator, create, schemas
from .parameters import OperatorError, Parameter
from .rows import layer_norm, softmax

__all__ = [
    "ACTIVATIONS",
    "OPERATORS",
    "Operator",
    "OperatorError",
    "Parameter",
    "activate",
    "add",
    "conv2d",
    "create",
    "dense",
    "depthwise_conv2d",
    "epilogue",
    "layer_norm",
    "matmul",
    "pad2d",
    "schemas",
    "softmax",
    "transpose",
    "unary",
]
